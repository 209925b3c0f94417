// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_cublaslt/arithmetic.hpp"
#include "support/fake_cublaslt/controls.hpp"
#include "support/fake_cublaslt/ways.hpp"

#include <memory>
#include <mutex>
#include <vector>

extern "C" trireme::testing::CublasltControls* fake_cublaslt_controls();

namespace trireme::testing::cublaslt {

/// One call of cublasLtMatmul, as it will run.
struct Launch {
  Problem problem;
  Record record;
  Addresses addresses;
  Factors factors;
  void* workspace = nullptr;
  std::size_t workspace_bytes = 0;
  /// Bytes for all matrices.
  std::uint64_t needed_bytes() const { return record.workspace_bytes * problem.matrices(); }
  /// Else a recording may run it again.
  bool once = false;
};

/// cublasLtHandle_t.
struct Handle {
  std::uint64_t mark = 0;
  int device = 0;
  int capability = 0;
  std::mutex one_at_a_time;
  /// Those that recordings may run again.
  std::vector<std::unique_ptr<Launch>> recorded;
};

/// Whether all that was promised and is needed is there.
cublasStatus_t judge(const Launch& launch);
/// Puts it at the end of what the stream does.
cublasStatus_t enqueue(Handle& handle, std::unique_ptr<Launch> launch, cudaStream_t stream);

}  // namespace trireme::testing::cublaslt
