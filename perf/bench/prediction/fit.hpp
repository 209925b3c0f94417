// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "public_rows.hpp"

#include <array>
#include <cstddef>
#include <string_view>
#include <vector>

namespace trireme::perf {

/// Constants of a stack: factors on the machine file's shares and the program's gap.
inline constexpr std::array<std::string_view, 5> constant_names{"product", "attention", "memory",
                                                                "link", "gap"};
using Constants = std::array<double, constant_names.size()>;
inline constexpr Constants no_change{1, 1, 1, 1, 1};

/// Seconds of the row's step with these factors.
double predicted_seconds(const PublicRow& row, const Constants& constants);

/// Rows to fit constants on, at most a tenth and at least one: by their layouts alone. They are the
/// medoids of what the constants change: no measured time has a say.
std::vector<std::size_t> rows_to_fit(const std::vector<const PublicRow*>& rows);

/// Least robust distance in log space, each factor held to the machine file's by a prior: what the
/// rows do not determine, stays.
Constants fit(const std::vector<const PublicRow*>& rows);

}  // namespace trireme::perf
