// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"

#include <functional>
#include <string>
#include <string_view>

namespace trireme::base {

/// Takes an element, an object or a list itself, of a list that is the member `key` of the text's
/// object. `so_far` is what was read of that object. True: it is dropped; false: it stays.
using TakeElement =
    std::function<bool(const Json& so_far, const std::string& key, const Json& element)>;

/// As parse_json(), for an object with long lists: at no time is more of them in memory than `take`
/// leaves, and one element.
Result<Json> parse_json_lists(std::string_view text, std::string_view source, ExitCode code,
                              const TakeElement& take);

}  // namespace trireme::base
