// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/versions.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/format.hpp"

#include <hdf5.h>

namespace trireme::checkpoint {

std::vector<base::LibraryVersion> library_versions() {
  unsigned major = 0;
  unsigned minor = 0;
  unsigned release = 0;
  H5get_libversion(&major, &minor, &release);
  return {{"HDF5", base::format("{}.{}.{}", major, minor, release)}, base::digest_library()};
}

}  // namespace trireme::checkpoint
