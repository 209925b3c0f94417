// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <optional>
#include <string>

namespace trireme::track {

/// The address at which this node listens: that of the interface, without one that which the
/// host's name stands for, else the first.
base::Result<std::string> address_at(const std::optional<std::string>& interface);

}  // namespace trireme::track
