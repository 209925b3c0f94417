// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::comm::nccl {

/// ncclResult_t: what NCCL's functions return, and what those of its network plugins return to it.
enum class Result : int {
  success = 0,
  unhandled_cuda_error = 1,
  system_error = 2,
  internal_error = 3,
  invalid_argument = 4,
  invalid_usage = 5,
  remote_error = 6,
  in_progress = 7,
};

}  // namespace trireme::comm::nccl
