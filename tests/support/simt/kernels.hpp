// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/device/operand_kernels.hpp"
#include "support/simt/executor.hpp"

#include <map>
#include <memory>
#include <string>

namespace trireme::device::simt {

/// The own kernels of the cuda backend on the executor: device::Kernels whose every access to
/// memory is checked, and whose every output must be written. Products, which a library computes on
/// a GPU, are those of the reference.
class ExecutedKernels final : public test::OperandKernels {
 public:
  explicit ExecutedKernels(std::uint64_t seed) : executor_(seed) {}

  const char* name() const override { return "simt"; }
  void synchronize() override {}
  /// Traffic of the last operation, by operand.
  const std::map<std::string, Traffic>& traffic() const { return traffic_; }

 private:
  void run(const char* operation, std::span<const test::Operand> operands,
           const Body& body) override;

  Executor executor_;
  std::map<std::string, Traffic> traffic_;
};

}  // namespace trireme::device::simt
