// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "folders.hpp"

#include <string>
#include <vector>

namespace trireme::spank {

/// Whose rights a process takes on.
struct User {
  Owner owner;
  std::vector<gid_t> groups;
};

/// Appends a line to a file of the user's, which is made where its folder exists, else does
/// nothing. A process of its own does it with the user's rights alone; nobody waits for it, so that
/// a file system that hangs holds up no slurmstepd, and it ends by itself after some seconds.
void append_as_user(const User& user, const std::string& path, const std::string& line);

}  // namespace trireme::spank
