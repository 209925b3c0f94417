// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include <cstddef>
#include <cstdint>
#include <string>

namespace trireme::apps {

/// Columns of the terminal on standard output, 40 to 200; 100 where it is none.
std::size_t terminal_width();

/// Milliseconds since 1970.
std::int64_t now_ms();

/// JSON as a line of output; bytes of others that are no UTF-8 are replaced.
std::string json_line(const base::Json& json);

}  // namespace trireme::apps
