// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace trireme::schema {

/// Keys of exactly this name: in full, without the section, or as other trainers call it. Empty
/// when there is none.
std::vector<std::string> keys_called(std::string_view name);

}  // namespace trireme::schema
