// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include <string>

namespace trireme::base {

/// Text of a value, in one line or with so many blanks a level: always UTF-8. Strings may hold any
/// bytes (names of files, say): their ill-formed parts become U+FFFD. All JSON that is written is
/// made here; who must have the bytes back keeps them elsewhere.
std::string json_text(const Json& value, int indentation = -1);

}  // namespace trireme::base
