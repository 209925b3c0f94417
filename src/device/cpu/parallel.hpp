#pragma once

#include "device/cpu/range.hpp"
#include "device/denormals.hpp"

#include <algorithm>
#include <cstdint>

namespace trireme::device::cpu {

/// body(thread) on each of `threads` OpenMP threads, this one among them. Denormals are flushed
/// in each. The body throws nothing.
template <typename Body>
void parallel(int threads, const Body& body) {
  if (threads == 1) {
    flush_denormals();
    body(0);
    return;
  }
  // One iteration a thread: which thread takes which part never changes a result, because no
  // kernel lets a sum depend on how work was cut.
#pragma omp parallel for num_threads(threads) schedule(static, 1)
  for (int thread = 0; thread < threads; ++thread) {
    flush_denormals();
    body(thread);
  }
}

/// body(range) over [0, count), cut at multiples of `grain` into at most `threads` parts. One
/// part runs here, without waking other threads: choose the grain so that it is worth a wake-up.
template <typename Body>
void parallel_for(int threads, std::int64_t count, std::int64_t grain, const Body& body) {
  const auto grains = (count + grain - 1) / grain;
  if (grains == 0) return;
  const int parts = static_cast<int>(std::min<std::int64_t>(threads, grains));
  parallel(parts, [&](int part) { body(part_of(count, grain, parts, part)); });
}

}  // namespace trireme::device::cpu
