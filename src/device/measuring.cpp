// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/kernels.hpp"

namespace trireme::device {
namespace {

class MeasuringKernels : public Kernels {
 public:
  const char* name() const override { return "measuring"; }
  double sum_of_squares(const Tensor&) override { return 0.0; }
  double sum(const Tensor&) override { return 0.0; }
  void synchronize() override {}

 private:
  void compute(const Operation&) override {}
};

/// Operands of its GEMMs lie in measuring arenas, as aligned as in real ones.
class GemmCollectingKernels final : public MeasuringKernels {
 public:
  explicit GemmCollectingKernels(std::vector<GemmCall>& calls) : calls_(calls) {}

 private:
  void compute(const Operation& operation) override {
    operation.visit([this]<typename One>(const One& one) {
      if constexpr (GemmOperations::holds<One> || MatrixProductOperations::holds<One>) {
        calls_.push_back(gemm_call(one));
      }
    });
  }

  std::vector<GemmCall>& calls_;
};

}  // namespace

std::unique_ptr<Kernels> make_gemm_collecting_kernels(std::vector<GemmCall>& calls) {
  return std::make_unique<GemmCollectingKernels>(calls);
}

std::unique_ptr<Kernels> make_measuring_kernels() {
  return std::make_unique<MeasuringKernels>();
}

}  // namespace trireme::device
