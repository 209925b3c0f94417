// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trireme::base {

/// A foreign library, and the version that this process runs with (which may differ from the one
/// it was built against). A room that owns libraries lists them in its versions.hpp.
struct LibraryVersion {
  std::string library;
  std::string version;
};

}  // namespace trireme::base
