// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/versions.hpp"

#include "comm/mpi/calls.hpp"

#include <algorithm>

namespace trireme::comm {

std::vector<base::LibraryVersion> library_versions() {
  // "Open MPI v4.1.4, package: …, ident: …": name and version end at the first comma.
  auto text = mpi::library_version();
  text.resize(std::min(text.size(), text.find_first_of(",\n")));
  return {{"MPI", text}};
}

}  // namespace trireme::comm
