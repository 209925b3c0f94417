// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trireme::base {

/// Unique id of 32 hexadecimal digits.
std::string random_id();

}  // namespace trireme::base
