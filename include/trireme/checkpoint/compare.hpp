// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

namespace trireme::checkpoint {

/// Tensor that is not the same in two steps.
struct TensorDifference {
  enum class Kind { only_first, only_second, shape, dtype, values };
  std::string name;
  Kind kind = Kind::values;
  /// Elements of `values` in all, and those with other bits.
  std::int64_t elements = 0;
  std::int64_t differing = 0;
  /// Largest magnitude of a difference; NaN where one value is no number.
  double largest = 0;
  /// Norm of the difference over the norm of the first step's values, in double precision.
  double relative = 0;

  /// "values", "only in the first"…
  const char* kind_text() const;
};

/// Two steps side by side, whatever layouts saved them.
struct Comparison {
  /// Tensors that both have.
  std::size_t common = 0;
  /// Ascending by name.
  std::vector<TensorDifference> tensors;
  /// Differences of everything else that the manifests hold, as [name, first, second]: step,
  /// tokens, and the members of the saved state but the configuration.
  std::vector<base::Json> facts;
  /// Lines of the resolved configuration that only the first has, and only the second.
  std::vector<std::string> only_first_settings;
  std::vector<std::string> only_second_settings;
};

/// Compares all tensors bit by bit; checksums are verified on the way. Throws Error (checkpoint).
Comparison compare(const std::filesystem::path& first_step,
                   const std::filesystem::path& second_step);

}  // namespace trireme::checkpoint
