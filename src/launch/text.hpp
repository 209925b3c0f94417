// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/text.hpp"

/// Small text, without locales. Private to the room.
namespace trireme::launch {

using base::is_control;
using base::is_digit;
using base::is_lower_or_digit;
using base::parse_number;
using base::shown;
using base::split;
using base::trimmed;

}  // namespace trireme::launch
