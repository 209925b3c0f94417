// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime_api.h>

#include <optional>
#include <source_location>
#include <string>

namespace trireme::device::cuda {

/// "cudaMalloc: out of memory (cudaErrorMemoryAllocation)".
std::string failure_text(const char* call, cudaError_t code);

/// Throws base::Error of ExitCode::topology if a call of the runtime failed. Launches fail here
/// too, and work that ran before and only now is known to have failed.
void check(cudaError_t code, const char* call,
           std::source_location where = std::source_location::current());

/// Result of a close, as base::UniqueHandle expects it.
std::optional<std::string> close_result(cudaError_t code, const char* call);

}  // namespace trireme::device::cuda
