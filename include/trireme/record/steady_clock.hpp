// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trireme::record {

/// Name of the clock behind std::chrono::steady_clock: the same in all processes that read one
/// clock. Of the running kernel, and of the time namespace, which may shift it.
std::string steady_clock_name();

}  // namespace trireme::record
