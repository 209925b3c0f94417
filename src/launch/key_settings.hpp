// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/launch/contract.hpp"

#include <string>
#include <string_view>

/// Settings of a contract by the key of the configuration that they set. Private to the room.
namespace trireme::launch {

/// Key of the lead before the time limit.
inline constexpr std::string_view lead_key = "run.signal_lead";

/// The last --trireme-set of a key; null if there is none.
const Setting* last_of_any_key(const Contract& contract, std::string_view key);

/// Setting of a key: its option's, or else the last --trireme-set; null if there is none.
const Setting* setting_of(const Contract& contract, std::string_view key);

/// The value that a setting gives its key; empty for none.
std::string value_of(const Setting* setting);

}  // namespace trireme::launch
