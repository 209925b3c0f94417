// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"

#include "gpu_copy.hpp"

namespace trireme::bench {

double gpu_copy_rate(std::int64_t) {
  throw base::Error(base::ExitCode::topology,
                    "CUDA is not in this build; configure with -DTRIREME_ENABLE_CUDA=ON");
}

}  // namespace trireme::bench
