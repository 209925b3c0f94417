// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/gpu_activity.hpp"

namespace trireme::device {

base::Result<std::unique_ptr<GpuActivity>> start_gpu_activity() {
  return base::Failure{base::ExitCode::topology,
                       "CUPTI is not in this build; configure with -DTRIREME_ENABLE_CUDA=ON and a "
                       "CUDA toolkit that has cupti.h"};
}

}  // namespace trireme::device
