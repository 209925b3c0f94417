// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/device/operations/decompositions.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <span>

/// Parts that backends of decompositions share: limits of their libraries, which count in 32 bits,
/// and how a failure is told.
namespace trireme::device {

inline int side_of(const Tensor& square) {
  TRIREME_EXPECT(square.dim(0) < 32768, "a matrix that a library can count: " + square.text());
  return static_cast<int>(square.dim(0));
}

/// The numbers of a matrix that lies on the host, as doubles.
inline void widen(std::span<const float> high, std::span<const float> low, double* to) {
  std::copy(high.begin(), high.end(), to);
  for (std::size_t at = 0; at < low.size(); ++at) to[at] += static_cast<double>(low[at]);
}

/// As much of it as the libraries can count.
inline int length_of(const Tensor& memory) {
  return static_cast<int>(
      std::min<std::int64_t>(memory.element_count(), std::numeric_limits<int>::max()));
}

/// `info`: what the library's routine said; 0: done.
inline void expect_decomposed(const char* routine, int info, int n) {
  if (info == 0) return;
  throw base::Error(base::ExitCode::internal,
                    base::format("{} of a matrix [{}, {}] failed (info {})", routine, n, n, info));
}

}  // namespace trireme::device
