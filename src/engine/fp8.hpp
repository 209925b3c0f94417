#pragma once

#include "trireme/engine/engine.hpp"

namespace trireme::engine {

/// Whether the model's matrices on this mesh can be multiplied in FP8, if the options ask for it.
base::Status check_fp8(const EngineOptions& options);

}  // namespace trireme::engine
