// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace trireme::postmortem {

/// Bytes of a message in a rank's log, which may have several lines.
inline constexpr std::size_t longest_text = std::size_t{16} << 10;

}  // namespace trireme::postmortem
