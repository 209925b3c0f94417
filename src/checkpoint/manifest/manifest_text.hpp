// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/manifest.hpp"

#include <cstddef>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// manifest_text() of a valid manifest. Throws Error for one that breaks an invariant (internal) or
/// is too long (checkpoint).
std::string committable_text(const Manifest& manifest);

/// Bytes of a box in the text of a manifest, its comma among them.
std::size_t box_text_bytes(const StoredBox& stored);

/// Reason not to write a checkpoint whose manifest `is` ("is 300 MiB") longer than readers accept.
std::string manifest_too_long(std::string_view is);

}  // namespace trireme::checkpoint
