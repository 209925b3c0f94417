// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/runtime/session.hpp"

namespace trireme::apps {

/// Session options of a configuration. `config` must outlive them. Throws Error (usage) where its
/// keys contradict each other, and where GPUs have no attention for its model.
runtime::SessionOptions session_options(const config::Config& config);

}  // namespace trireme::apps
