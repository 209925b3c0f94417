// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/clock_offset.hpp"

#include "trireme/comm/bytes.hpp"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <limits>
#include <string>
#include <vector>

namespace trireme::comm {
namespace {

constexpr int exchanges = 16;
/// Tag of these messages; the pipeline's have numbers from 0.
constexpr int clock_tag = 4099;

std::int64_t now() {
  return std::chrono::steady_clock::now().time_since_epoch() / std::chrono::nanoseconds(1);
}

/// A time as a tensor: groups move types that tensors have.
device::Tensor words_of(std::int64_t& time) {
  return {&time, device::DType::i32, {2}};
}

void answer(ProcessGroup& group, int other) {
  for (int exchange = 0; exchange < exchanges; ++exchange) {
    std::int64_t time = 0;
    group.receive(words_of(time), other, clock_tag);
    time = now();
    group.send(words_of(time), other, clock_tag);
  }
}

ClockOffset ask(ProcessGroup& group) {
  ClockOffset best{0, std::numeric_limits<std::int64_t>::max()};
  for (int exchange = 0; exchange < exchanges; ++exchange) {
    const auto begin = now();
    auto time = begin;
    group.send(words_of(time), 0, clock_tag);
    group.receive(words_of(time), 0, clock_tag);
    const auto half = (now() - begin + 1) / 2;
    if (half < best.error_nanoseconds) best = {begin + half - time, half};
  }
  return best;
}

}  // namespace

ClockOffset measure_clock_offset(ProcessGroup& group, std::string_view clock) {
  const auto clocks = all_gather_bytes(group, clock);
  const auto first_of = [&](std::string_view name) {
    return static_cast<int>(std::find(clocks.begin(), clocks.end(), name) - clocks.begin());
  };
  ClockOffset own;
  for (int rank = 1; rank < group.size(); ++rank) {
    const auto& name = clocks[static_cast<std::size_t>(rank)];
    if (first_of(name) != rank) continue;
    if (group.rank() == 0) answer(group, rank);
    if (group.rank() == rank) own = ask(group);
  }
  std::string bytes(sizeof(ClockOffset), '\0');
  std::memcpy(bytes.data(), &own, sizeof own);
  const auto all = all_gather_bytes(group, bytes);
  std::memcpy(&own, all[static_cast<std::size_t>(first_of(clock))].data(), sizeof own);
  return own;
}

}  // namespace trireme::comm
