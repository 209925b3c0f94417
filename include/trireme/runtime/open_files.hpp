// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trireme::runtime {

/// Raises this process's limit of open files as far as allowed, to 65,536 at most, before MPI
/// starts: over TCP each peer takes a descriptor, and as many ranks use up 1,024, the usual soft
/// limit. Failures are ignored: MPI then reports the shortage.
void raise_open_files();

/// Sentence about a rank that may open fewer files than it needs to reach so many peers over TCP;
/// empty where it may open enough.
std::string open_files_shortage(int peers);

}  // namespace trireme::runtime
