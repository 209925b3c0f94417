// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/parallel_rules.hpp"
#include "trireme/schema/value.hpp"

#include <functional>
#include <optional>
#include <string_view>

namespace trireme::schema {

/// Arrangement of ranks by the values of layout::arrangement_keys(), as far as `value_of` knows
/// them.
layout::ParallelArrangement arrangement(
    const std::function<std::optional<Value>(std::string_view key)>& value_of);

}  // namespace trireme::schema
