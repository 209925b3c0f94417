// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>

namespace trireme::config {

/// Steps from the first to the last, both included.
struct StepRange {
  /// Largest number of steps: readers of traces hold all of them in memory.
  static constexpr std::int64_t most_steps = 100;

  std::int64_t first = 1;
  std::int64_t last = 1;

  bool holds(std::int64_t step) const { return first <= step && step <= last; }
  /// "100..102", "100".
  std::string text() const;
  bool operator==(const StepRange&) const = default;
};

/// File of a run directory that asks the run to record its next steps; holds their number.
inline constexpr const char* profile_request = "PROFILE";
/// The number in such a file, within StepRange::most_steps; 0 if it holds none.
std::int32_t read_profile_request(const std::filesystem::path& file);

/// "100..102" or "100". The failure is a phrase: "is no range of steps ...".
base::Result<StepRange> parse_step_range(std::string_view text);

}  // namespace trireme::config
