// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include <cmath>

namespace trireme::report {

/// JSON has no numbers that are not finite.
inline base::Json number_or_null(double number) {
  return std::isfinite(number) ? base::Json(number) : base::Json(nullptr);
}

}  // namespace trireme::report
