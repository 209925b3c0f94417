// SPDX-License-Identifier: Apache-2.0
#include "totals.hpp"

#include "trireme/base/contract.hpp"

#include <span>

namespace trireme::engine {
namespace {

/// Digits of 16 bits, as ExactSum's.
constexpr std::size_t words_of_count = 4;

void write_count(std::int64_t count, std::vector<std::int32_t>& to) {
  for (std::size_t digit = 0; digit < words_of_count; ++digit) {
    to.push_back(
        static_cast<std::int32_t>(static_cast<std::uint64_t>(count) >> (16 * digit) & 0xFFFFU));
  }
}

std::int64_t read_count(const std::int32_t* from) {
  std::uint64_t count = 0;
  for (std::size_t digit = 0; digit < words_of_count; ++digit) {
    count += std::uint64_t{static_cast<std::uint32_t>(from[digit])} << (16 * digit);
  }
  return static_cast<std::int64_t>(count);
}

/// `each`: ranks whose words are summed already on each of the group's.
void sum_words(comm::ProcessGroup& group, std::vector<std::int32_t>& words, std::int64_t each = 1) {
  if (group.size() == 1) return;
  TRIREME_EXPECT(each * group.size() <= ExactSum::most_ranks,
                 "digits of all ranks have room in a word");
  group.host_group().all_reduce(
      device::Tensor(words.data(), device::DType::i32, {std::ssize(words)}));
}

}  // namespace

void sum_over_ranks(const comm::AxisGroups& groups, Totals& totals) {
  std::vector<std::int32_t> words;
  for (auto* const sum : {&totals.loss, &totals.squares}) {
    words.resize(words.size() + ExactSum::words);
    sum->write(std::span(words).last<ExactSum::words>());
  }
  write_count(totals.tokens, words);
  for (const auto ns : totals.bubble_ns) write_count(ns, words);
  if (auto* const all = groups.all_ranks()) {
    sum_words(*all, words);
  } else {
    std::int64_t ranks = 1;
    for (const auto axis : layout::all_axes) {
      auto* const group = groups.if_any(axis);
      if (group == nullptr) continue;
      sum_words(*group, words, ranks);
      ranks *= group->size();
    }
  }
  const std::int32_t* next = words.data();
  for (auto* const sum : {&totals.loss, &totals.squares}) {
    sum->read(std::span<const std::int32_t, ExactSum::words>(next, ExactSum::words));
    next += ExactSum::words;
  }
  totals.tokens = read_count(next);
  for (auto& ns : totals.bubble_ns) ns = read_count(next += words_of_count);
}

std::int64_t sum_of_counts(comm::ProcessGroup& group, std::int64_t count) {
  std::vector<std::int32_t> words;
  write_count(count, words);
  sum_words(group, words);
  return read_count(words.data());
}

}  // namespace trireme::engine
