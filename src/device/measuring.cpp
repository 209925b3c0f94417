// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/kernels.hpp"
#include "trireme/device/passing_device.hpp"

namespace trireme::device {
namespace {

class NoStopwatch final : public Stopwatch {
 public:
  void start() override {}
  void stop() override {}
  double take() override { return 0.0; }
};

/// Time that nothing takes is not read from a clock: a search measures thousands of steps.
class MeasuringDevice final : public PassingDevice {
 public:
  MeasuringDevice() : PassingDevice(host_device()) {}

  std::unique_ptr<Stopwatch> stopwatch() override { return std::make_unique<NoStopwatch>(); }
};

class MeasuringKernels : public Kernels {
 public:
  const char* name() const override { return "measuring"; }
  Device& device() override { return device_; }
  double sum_of_squares(const Tensor&) override { return 0.0; }
  double sum(const Tensor&) override { return 0.0; }
  void synchronize() override {}

 private:
  void compute(const Operation&) override {}

  MeasuringDevice device_;
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
