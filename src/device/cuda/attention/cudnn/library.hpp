// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include "device/cuda/attention/cudnn/abi.hpp"

#include <string>

namespace trireme::device::cudnn {

struct Library {
  Api api;
  /// "9.19.1".
  std::string version;
  /// Path of the file that was found.
  std::string path;
};

/// cuDNN, once for the process; a failure names the places that were searched.
base::Result<const Library*> load_library();

}  // namespace trireme::device::cudnn
