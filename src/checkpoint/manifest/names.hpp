// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::checkpoint {

/// Names in a manifest that its writer and its reader share.
inline constexpr const char* format_name = "trireme-checkpoint";
inline constexpr const char* digests_key = "digests_sha256";

}  // namespace trireme::checkpoint
