#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

/// All ranks go on together or none does. At fixed points only: configuration, binding, device,
/// groups, before each commit.
namespace trireme::runtime {

/// Collective over the group. Host-blocking: yes. If any rank failed, all throw
/// comm::AgreedError with the code and text of the lowest failing rank, and how many others
/// failed too.
void agree(comm::ProcessGroup& group, const base::Status& status);

/// The same for a rank that has a value if it succeeded.
template <typename T>
T agree(comm::ProcessGroup& group, base::Result<T> result) {
  agree(group, result.ok() ? base::Status{} : base::Status{result.failure()});
  return std::move(result).value();
}

/// Runs `action` on every rank; what it throws counts as this rank's failure. Only for actions
/// that talk to no peer: one that fails in the middle of a collective leaves peers waiting.
template <typename F>
auto agree_after(comm::ProcessGroup& group, F&& action) {
  using Value = std::invoke_result_t<F>;
  base::Status status;
  const auto guarded = [&](auto&& body) {
    try {
      body();
    } catch (const comm::PeerError&) {
      throw;
    } catch (const base::Error& error) {
      status = base::Failure{error.code(), error.what()};
    } catch (const std::exception& error) {
      status = base::Failure{base::ExitCode::internal, error.what()};
    }
    agree(group, status);
  };
  if constexpr (std::is_void_v<Value>) {
    guarded(std::forward<F>(action));
  } else {
    std::optional<Value> value;
    guarded([&] { value.emplace(std::forward<F>(action)()); });
    TRIREME_ENSURE(value.has_value(), "a rank that has no value has thrown");
    return std::move(*value);
  }
}

/// Collective over the group. Host-blocking: yes. All throw comm::AgreedError (ExitCode::launch)
/// unless every rank has the same number: `what` is "the configuration", and `advice` what to do.
void agree_equal(comm::ProcessGroup& group, std::uint64_t hash, std::string_view what,
                 std::string_view advice);

}  // namespace trireme::runtime
