// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/log.hpp"

namespace trireme::base::log {

/// Into this rank's file alone, where it has one: for what another rank says aloud for all.
void write_to_file(Level level, std::string_view room, std::string_view message);

}  // namespace trireme::base::log
