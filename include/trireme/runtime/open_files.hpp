// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::runtime {

/// Raises this process's limit of open files as far as it may, to 65,536 at most, before MPI
/// starts: over TCP each peer takes a descriptor, and 1,024, the usual first limit, are used up by
/// as many ranks. Silent where it cannot: MPI then says what it lacks.
void raise_open_files();

}  // namespace trireme::runtime
