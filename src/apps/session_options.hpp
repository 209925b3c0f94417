// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/runtime/session.hpp"

namespace trireme::apps {

/// What a configuration asks of its start. `config` must outlive it. Throws Error (usage) where
/// its keys do not go together, and where GPUs have no attention for its model.
runtime::SessionOptions session_options(const config::Config& config);

}  // namespace trireme::apps
