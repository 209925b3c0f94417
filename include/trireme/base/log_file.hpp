// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/log.hpp"

namespace trireme::base::log {

/// Writes to this rank's file alone, if it has one: for a message that another rank prints for all.
void write_to_file(Level level, std::string_view room, std::string_view message);

}  // namespace trireme::base::log
