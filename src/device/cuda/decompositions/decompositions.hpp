// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/device/operations/decompositions.hpp"

#include <cstddef>
#include <memory>
#include <string>

namespace trireme::device::cuda {

class CudaDevice;

/// DecompositionOperations on a GPU. The host waits for each: whether it converged decides what is
/// done next.
class Decompositions {
 public:
  virtual ~Decompositions() = default;
  virtual void run(const SymmetricEigenvectors& operation) = 0;
  virtual void run(const OrthonormaliseRows& operation) = 0;
  /// Bytes that it has of its own, beside the workspaces of operations.
  virtual std::size_t workspace_bytes() const = 0;
  /// "cuSOLVER 12.0.4".
  virtual std::string library() const = 0;
};

/// By cuSOLVER; a failure (topology) where it is not found, or not in this build. The thread has
/// selected the GPU.
base::Result<std::unique_ptr<Decompositions>> open_decompositions(CudaDevice& device);

}  // namespace trireme::device::cuda
