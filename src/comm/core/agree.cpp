// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/agree.hpp"

#include "trireme/base/format.hpp"
#include "trireme/comm/bytes.hpp"

#include "comm/core/ranks_text.hpp"

#include <cstring>

namespace trireme::comm {
namespace {

using device::DType;
using device::Tensor;

std::int32_t maximum(ProcessGroup& group, std::int32_t value) {
  group.all_reduce(Tensor(&value, DType::i32, {1}), comm::ReduceOp::max);
  return value;
}

/// Positions of the ranks for which it holds, ascending. A bit a rank, which no other sets: their
/// sum is one small all-reduce of integers, whatever the number of ranks.
std::vector<int> positions_where(ProcessGroup& group, bool holds) {
  constexpr int bits = 32;
  std::vector<std::int32_t> words(static_cast<std::size_t>((group.size() + bits - 1) / bits));
  const auto bit_of = [](int position) {
    return static_cast<std::int32_t>(std::uint32_t{1} << (position % bits));
  };
  const auto word_of = [&](int position) -> std::int32_t& {
    return words[static_cast<std::size_t>(position / bits)];
  };
  if (holds) word_of(group.rank()) = bit_of(group.rank());
  group.all_reduce(Tensor(words.data(), DType::i32, {std::ssize(words)}));
  std::vector<int> positions;
  for (int position = 0; position < group.size(); ++position) {
    if ((word_of(position) & bit_of(position)) != 0) positions.push_back(position);
  }
  return positions;
}

std::vector<int> ranks_at(const ProcessGroup& group, const std::vector<int>& positions) {
  std::vector<int> ranks;
  for (const int position : positions) {
    ranks.push_back(group.ranks()[static_cast<std::size_t>(position)].value());
  }
  return ranks;
}

}  // namespace

void agree(ProcessGroup& group, const base::Status& status) {
  const auto code = status.ok() ? 0 : static_cast<std::int32_t>(status.failure().code);
  if (maximum(group, code) == 0) return;
  const auto positions = positions_where(group, code != 0);
  const int first = positions.front();
  auto failed = ranks_at(group, positions);
  auto first_code = code;
  group.broadcast(Tensor(&first_code, DType::i32, {1}), first);
  const base::Rank first_rank(failed.front());
  // Only one text is broadcast, in full, however many ranks failed.
  auto text = broadcast_bytes(group, status.ok() ? "" : status.failure().text, first);
  const auto failed_count = static_cast<int>(failed.size());
  const bool differs = status.ok() || status.failure().text != text;
  const bool alike = maximum(group, differs ? 1 : 0) == 0;
  if (group.size() > 1 && !alike) {
    failed.erase(failed.begin());
    text = base::format("rank {}: {}", first_rank.value(), text);
    if (!failed.empty()) text += base::format(" ({} failed too)", ranks_text(failed));
  }
  throw AgreedError({base::ExitCode{first_code}, text}, first_rank, group.size(),
                    alike ? failed_count : 1);
}

std::string agree_on_first(ProcessGroup& group, const base::Result<std::string>& of_first) {
  const bool is_first = group.rank() == 0;
  auto code = is_first && !of_first.ok() ? static_cast<std::int32_t>(of_first.failure().code) : 0;
  group.broadcast(Tensor(&code, DType::i32, {1}), 0);
  auto text = broadcast_bytes(
      group, !is_first ? "" : (of_first.ok() ? *of_first : of_first.failure().text));
  if (code == 0) return text;
  throw AgreedError({base::ExitCode{code}, std::move(text)}, group.ranks().front(), group.size(),
                    group.size());
}

void agree_equal(ProcessGroup& group, std::uint64_t hash, std::string_view what,
                 std::string_view advice) {
  std::int32_t mine[2];
  std::memcpy(mine, &hash, sizeof hash);
  // The complement's maximum is the complement of the minimum: all are alike where the two meet.
  std::int32_t limits[] = {mine[0], mine[1], ~mine[0], ~mine[1]};
  group.all_reduce(Tensor(limits, DType::i32, {4}), ReduceOp::max);
  if (limits[0] == ~limits[2] && limits[1] == ~limits[3]) return;
  std::int32_t of_first[] = {mine[0], mine[1]};
  group.broadcast(Tensor(of_first, DType::i32, {2}), 0);
  const auto others =
      ranks_at(group, positions_where(group, std::memcmp(of_first, mine, sizeof mine) != 0));
  const auto reference = group.ranks().front();
  throw AgreedError(
      {base::ExitCode::launch,
       base::format("{} of {} is not that of rank {} (all ranks must compute the same thing); {}",
                    what, ranks_text(others), reference.value(), advice)},
      base::Rank(others.front()), group.size());
}

}  // namespace trireme::comm
