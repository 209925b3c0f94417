// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "folders.hpp"

#include <string>
#include <vector>

namespace trireme::spank {

/// User whose rights a process takes.
struct User {
  Owner owner;
  std::vector<gid_t> groups;
};

/// Appends a line to a file of the user's, which is created if its folder exists; otherwise does
/// nothing. A separate process does it with the user's rights only; it is not waited for, so that a
/// file system that hangs blocks no slurmstepd, and it ends by itself after some seconds.
void append_as_user(const User& user, const std::string& path, const std::string& line);

}  // namespace trireme::spank
