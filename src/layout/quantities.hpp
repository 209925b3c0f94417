// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/parallel_rules.hpp"

#include <string_view>

/// Words for quantities in sentences of violations. Private to the room.
namespace trireme::layout {

/// "tensor", "stage_layers".
std::string_view word_of(Quantity quantity);

}  // namespace trireme::layout
