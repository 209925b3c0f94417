// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "device/cpu/runtime/isa.hpp"
#include "device/cpu/runtime/team.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace trireme::device::cpu {

/// Surroundings of every kernel of the cpu backend. Kernels of one context run one after the other.
struct Context {
  std::shared_ptr<Team> team;
  Isa isa = Isa::avx2;
  Tiling tiling = Tiling::for_threads;
  /// Partial sums of fixed chunks; grows to the largest need and stays.
  std::vector<float> partials = {};

  float* partial_sums(std::int64_t count) {
    const auto wanted = static_cast<std::size_t>(count);
    if (partials.size() < wanted) partials.resize(wanted);
    return partials.data();
  }
};

}  // namespace trireme::device::cpu
