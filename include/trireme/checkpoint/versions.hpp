// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/library_version.hpp"

#include <vector>

namespace trireme::checkpoint {

/// The libraries of this room, as they are at run time.
std::vector<base::LibraryVersion> library_versions();

}  // namespace trireme::checkpoint
