// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trireme::apps {

/// All of standard input. Throws base::Error (usage) when it cannot be read.
std::string read_standard_input();

}  // namespace trireme::apps
