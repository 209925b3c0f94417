// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "unit/checkpoint/support.hpp"

#include <algorithm>
#include <cstdint>
#include <vector>

namespace trireme::tests {

/// Saves a step of ten elements of this value; `state` is what its manifest says besides.
inline checkpoint::StepFolder save_small(const std::filesystem::path& folder, std::int64_t step,
                                         float value = 0, base::Json state = {}) {
  checkpoint::StepFolder saved{{}, step};
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const Held small("w", {10}, device::DType::f32, layout::whole({10}));
    std::fill_n(small.data.f32(), 10, value);
    auto request = request_of(folder, step, {&small});
    request.state = std::move(state);
    saved.path = checkpoint::save(request, world).folder;
  });
  return saved;
}

/// Committed steps, newest first.
inline std::vector<std::int64_t> steps_in(const std::filesystem::path& folder) {
  std::vector<std::int64_t> steps;
  for (const auto& step : checkpoint::list(folder)) steps.push_back(step.step);
  return steps;
}

}  // namespace trireme::tests
