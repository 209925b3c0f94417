// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trireme::base {

/// 32 hexadecimal digits that nobody else has.
std::string random_id();

}  // namespace trireme::base
