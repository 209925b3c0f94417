#include "trireme/runtime/agree.hpp"

#include "trireme/base/format.hpp"
#include "trireme/comm/peer_error.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace trireme::runtime {
namespace {

device::Tensor words(void* data, std::int64_t count) {
  return {data, device::DType::i32, {count}};
}

/// The text of one rank, on all ranks.
std::string broadcast_text(comm::ProcessGroup& group, std::string text, int root) {
  auto length = static_cast<std::int32_t>(text.size());
  group.broadcast(words(&length, 1), root);
  text.resize(static_cast<std::size_t>(length + 3) / 4 * 4);
  if (!text.empty()) {
    group.broadcast(words(text.data(), static_cast<std::int64_t>(text.size() / 4)), root);
  }
  text.resize(static_cast<std::size_t>(length));
  return text;
}

template <typename T>
std::vector<T> gather(comm::ProcessGroup& group, T mine) {
  constexpr auto count = static_cast<std::int64_t>(sizeof(T) / 4);
  std::vector<T> all(static_cast<std::size_t>(group.size()));
  group.all_gather(words(&mine, count), words(all.data(), count * group.size()));
  return all;
}

}  // namespace

void agree(comm::ProcessGroup& group, const base::Status& mine) {
  const auto codes = gather(
      group, static_cast<std::int32_t>(mine.ok() ? base::ExitCode::done : mine.failure().code));
  const auto failed = std::find_if(codes.begin(), codes.end(), [](auto code) { return code != 0; });
  if (failed == codes.end()) return;
  const int root = static_cast<int>(failed - codes.begin());
  const auto text = broadcast_text(group, mine.ok() ? std::string{} : mine.failure().text, root);
  throw comm::AgreedError({static_cast<base::ExitCode>(*failed), text},
                          group.ranks()[static_cast<std::size_t>(root)]);
}

void agree_equal(comm::ProcessGroup& group, std::uint64_t value, std::string_view what) {
  const auto values = gather(group, value);
  const auto other = std::find_if(values.begin(), values.end(),
                                  [&](auto theirs) { return theirs != values.front(); });
  if (other == values.end()) return;
  const auto rank = group.ranks()[static_cast<std::size_t>(other - values.begin())];
  throw comm::AgreedError(
      {base::ExitCode::launch,
       base::format("rank {} has another {} than rank {} (all ranks must do the same work); start "
                    "all ranks with the same files, environment and command line",
                    rank.value(), what, group.ranks().front().value())},
      rank);
}

std::int32_t agree_largest(comm::ProcessGroup& group, std::int32_t mine) {
  group.all_reduce(words(&mine, 1), comm::ReduceOp::max);
  return mine;
}

}  // namespace trireme::runtime
