// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/gpu_activity.hpp"

namespace trireme::device {

/// NVTX is not in this build: a CUDA toolkit has its headers.
std::unique_ptr<telemetry::SpanObserver> make_nvtx_ranges(telemetry::SpanObserver*) {
  return nullptr;
}

}  // namespace trireme::device
