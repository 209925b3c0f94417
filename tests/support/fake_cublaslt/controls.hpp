// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>

namespace trireme::testing {

/// Words between tests and the stand-in of cuBLASLt. They find it by the function
/// fake_cublaslt_controls of the library that they have opened.
struct CublasltControls {
  /// A cublasLtEpilogue_t that heuristics do not offer. 0: all are offered.
  std::uint32_t refused_epilogue = 0;
  /// cublasLtMatmul fails with this epilogue, though heuristics offered it. 0: none.
  std::uint32_t failing_epilogue = 0;
  /// Algorithms take no batch of more matrices.
  std::uint64_t most_matrices = std::numeric_limits<std::uint64_t>::max();

  /// Products that were computed, by what computed them.
  std::uint64_t plain = 0;
  std::uint64_t vectorised = 0;
  std::uint64_t split = 0;
  /// With sums in halves that were rounded to a result's type that is not fp32.
  std::uint64_t rounded = 0;
  std::uint64_t slow = 0;
  /// Products among them with an epilogue other than the default.
  std::uint64_t with_epilogue = 0;
  /// Batches of several matrices among them; and multiplications and additions.
  std::uint64_t batches = 0;
  std::uint64_t flops = 0;
  /// Root mean squares of A and B, the smallest and the largest of all of those since a test set
  /// them anew; infinite where a number is not finite.
  double smallest_operand = std::numeric_limits<double>::infinity();
  double largest_operand = 0;
  /// cublasLtMatmul said that what was asked is not possible: misuse.
  std::uint64_t misuses = 0;
  /// The last reason for which something was refused.
  const char* last_refusal = "";
};

using CublasltControlsFunction = CublasltControls*();

}  // namespace trireme::testing
