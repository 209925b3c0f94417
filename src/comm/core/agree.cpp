// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/agree.hpp"

#include "trireme/base/format.hpp"
#include "trireme/comm/bytes.hpp"

#include "comm/core/ranks_text.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::comm {
namespace {

using device::DType;
using device::Tensor;

std::int32_t maximum(ProcessGroup& group, std::int32_t value) {
  group.all_reduce(Tensor(&value, DType::i32, {1}), comm::ReduceOp::max);
  return value;
}

std::vector<std::int32_t> all_gather_code(ProcessGroup& group, std::int32_t code) {
  std::vector<std::int32_t> all(static_cast<std::size_t>(group.size()));
  group.all_gather(Tensor(&code, DType::i32, {1}), Tensor(all.data(), DType::i32, {group.size()}));
  return all;
}

}  // namespace

void agree(ProcessGroup& group, const base::Status& status) {
  const auto code = status.ok() ? 0 : static_cast<std::int32_t>(status.failure().code);
  if (maximum(group, code) == 0) return;
  const auto codes = all_gather_code(group, code);
  std::vector<int> failed;
  for (int position = 0; position < group.size(); ++position) {
    const auto index = static_cast<std::size_t>(position);
    if (codes[index] != 0) failed.push_back(group.ranks()[index].value());
  }
  const auto first = std::find_if(codes.begin(), codes.end(), [](int one) { return one != 0; });
  const base::ExitCode first_code{*first};
  const base::Rank first_rank(failed.front());
  // Only one text is broadcast, in full, however many ranks failed.
  auto text = broadcast_bytes(group, status.ok() ? "" : status.failure().text,
                              static_cast<int>(first - codes.begin()));
  const auto failed_count = static_cast<int>(failed.size());
  const bool differs = status.ok() || status.failure().text != text;
  const bool alike = maximum(group, differs ? 1 : 0) == 0;
  if (group.size() > 1 && !alike) {
    failed.erase(failed.begin());
    text = base::format("rank {}: {}", first_rank.value(), text);
    if (!failed.empty()) text += base::format(" ({} failed too)", ranks_text(failed));
  }
  throw AgreedError({first_code, text}, first_rank, group.size(), alike ? failed_count : 1);
}

void agree_equal(ProcessGroup& group, std::uint64_t hash, std::string_view what,
                 std::string_view advice) {
  std::int32_t mine[2];
  std::memcpy(mine, &hash, sizeof hash);
  std::vector<std::int32_t> all(2 * static_cast<std::size_t>(group.size()));
  group.all_gather(Tensor(mine, DType::i32, {2}),
                   Tensor(all.data(), DType::i32, {group.size(), 2}));
  std::vector<int> others;
  for (std::size_t position = 0; position < static_cast<std::size_t>(group.size()); ++position) {
    if (std::memcmp(&all[2 * position], all.data(), sizeof hash) != 0) {
      others.push_back(group.ranks()[position].value());
    }
  }
  if (others.empty()) return;
  const auto reference = group.ranks().front();
  throw AgreedError(
      {base::ExitCode::launch,
       base::format("{} of {} is not that of rank {} (all ranks must compute the same thing); {}",
                    what, ranks_text(others), reference.value(), advice)},
      base::Rank(others.front()), group.size());
}

}  // namespace trireme::comm
