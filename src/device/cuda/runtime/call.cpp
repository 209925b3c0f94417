// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/runtime/call.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

namespace trireme::device::cuda {

std::string failure_text(const char* call, cudaError_t code) {
  return base::format("{}: {} ({})", call, cudaGetErrorString(code), cudaGetErrorName(code));
}

void check(cudaError_t code, const char* call, std::source_location where) {
  if (code == cudaSuccess) return;
  throw base::Error(base::ExitCode::topology, failure_text(call, code), where);
}

std::optional<std::string> close_result(cudaError_t code, const char* call) {
  // A process that ends takes its context with it; what is closed after that is closed already.
  if (code == cudaSuccess || code == cudaErrorCudartUnloading) return std::nullopt;
  return failure_text(call, code);
}

}  // namespace trireme::device::cuda
