// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "public_rows.hpp"

#include <cstddef>
#include <vector>

namespace trireme::perf {

/// Rows to fit factors on, at most a tenth and at least one: by their layouts alone. They are the
/// medoids of what the factors change: no measured time has a say.
std::vector<std::size_t> rows_to_fit(const std::vector<const PublicRow*>& rows);

}  // namespace trireme::perf
