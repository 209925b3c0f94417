// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/path.hpp"
#include "trireme/base/result.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/comm/process_group.hpp"

#include <cstdint>
#include <optional>
#include <string_view>
#include <type_traits>
#include <utility>

/// Agreement: all ranks go on together or all throw. At fixed points only: configuration, binding,
/// device, groups, before each commit.
namespace trireme::comm {

/// Collective over the group. Host-blocking: yes. If any rank failed, all throw
/// AgreedError with the code and text of the lowest failing rank, and how many others
/// failed too.
void agree(ProcessGroup& group, const base::Status& status);

/// Agreement of ranks that each have a value if they succeeded.
template <typename T>
T agree(ProcessGroup& group, base::Result<T> result) {
  agree(group, result.ok() ? base::Status{} : base::Status{result.failure()});
  return std::move(result).value();
}

/// Status of this rank that holds what `action` throws. A PeerError is rethrown, because lost ranks
/// cannot take part in an agreement. Only for actions without collectives: one that fails in the
/// middle of a collective leaves its peers waiting.
template <typename F>
base::Status status_of(F&& action) {
  try {
    std::forward<F>(action)();
    return {};
  } catch (const PeerError&) {
    throw;
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  } catch (const std::filesystem::filesystem_error& error) {
    return base::failure_of(error);
  } catch (const std::exception& error) {
    return base::Failure{base::ExitCode::internal, error.what()};
  }
}

/// Collective over the group. Host-blocking: yes. Runs `action`, which has no collectives inside,
/// on every rank, and agrees on its status.
template <typename F>
auto agree_after(ProcessGroup& group, F&& action) {
  using Value = std::invoke_result_t<F>;
  if constexpr (std::is_void_v<Value>) {
    agree(group, status_of(std::forward<F>(action)));
  } else {
    std::optional<Value> value;
    agree(group, status_of([&] { value.emplace(std::forward<F>(action)()); }));
    TRIREME_ENSURE(value.has_value(), "a rank that has no value has thrown");
    return std::move(*value);
  }
}

/// Collective over the group. Host-blocking: yes. What position 0 has, everywhere, or its failure,
/// which all throw as one (AgreedError); those of other positions are ignored.
std::string agree_on_first(ProcessGroup& group, const base::Result<std::string>& of_first);

/// Collective over the group. Host-blocking: yes. All throw AgreedError (ExitCode::launch)
/// unless every rank has the same number: `what` is "the configuration", and `advice` what to do.
void agree_equal(ProcessGroup& group, std::uint64_t hash, std::string_view what,
                 std::string_view advice);

}  // namespace trireme::comm
