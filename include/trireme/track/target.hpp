// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace trireme::track {

enum class Kind { tensorboard, wandb, mlflow, otlp, prometheus };
const char* name(Kind kind);

/// Where a run's record is sent: "tensorboard=DIR", "wandb=DIR", "mlflow=URL", "otlp=URL",
/// "prometheus=FILE".
struct Target {
  Kind kind = Kind::tensorboard;
  std::string place;  ///< an absolute path, or a URL without a slash at its end

  std::string text() const;
};

/// Refuses unknown kinds (with the nearest known one), empty places, and URLs that are none.
base::Result<Target> parse_target(std::string_view text);

}  // namespace trireme::track
