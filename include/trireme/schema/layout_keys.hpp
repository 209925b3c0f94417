// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>

namespace trireme::schema {

/// Names of the settings of a layout, which a start chooses together where they are auto.
std::span<const std::string> layout_keys();

}  // namespace trireme::schema
