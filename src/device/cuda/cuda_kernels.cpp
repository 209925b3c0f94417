#include "trireme/base/format.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/blas.hpp"
#include "device/cuda/cuda_device.hpp"
#include "device/cuda/launcher.hpp"
#include "device/cuda/own_kernels.hpp"
#include "device/cuda/products.hpp"
#include "device/cuda/stream.hpp"

namespace trireme::device {
namespace {

class CudaKernels final : public cuda::OwnKernels<cuda::Launcher> {
 public:
  CudaKernels(int card, const cuda::Blas& blas)
      : device_(card), launcher_(device_), products_(blas, device_.stream()) {}
  const char* name() const override { return "cuda"; }
  Device& device() override { return device_; }

  void linear_backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx,
                             bool accumulate) override {
    use_card();
    products_.backward_input(dy, w, dx, accumulate);
  }
  // Each of these has a place of its own for its result, which a recording would write again.
  void start_sum_of_squares(const Tensor& x) override {
    device_.expect_no_recording("a sum for the host");
    cuda::start_sum_of_squares(start(), x);
  }
  void start_sum(const Tensor& x) override {
    device_.expect_no_recording("a sum for the host");
    cuda::start_sum(start(), x);
  }
  std::vector<double> finish_sums() override {
    use_card();
    return launcher_.read_answers();
  }
  void synchronize() override { device_.synchronize(); }

 private:
  void use_card() const { device_.use(); }
  cuda::Launcher& start() override {
    use_card();
    launcher_.reset();
    return launcher_;
  }
  void multiply_forward(const Tensor& x, const Tensor& w, const Tensor& bias,
                        const Tensor& y) override {
    use_card();
    products_.forward(x, w, bias, y);
  }
  void multiply_backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) override {
    use_card();
    products_.backward_weight(dy, x, dw);
  }

  cuda::CudaDevice device_;
  cuda::Launcher launcher_;
  cuda::Products products_;
};

base::Failure no_card(const std::string& reason) {
  return {base::ExitCode::topology,
          base::format("numerics.backend = cuda finds no card ({}); run on a node with an NVIDIA "
                       "GPU and its driver, or use cpu",
                       reason)};
}

}  // namespace

base::Result<std::vector<std::string>> card_bus_ids() {
  int count = 0;
  if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    return no_card(cuda::failure_text("cudaGetDeviceCount", code));
  }
  std::vector<std::string> ids;
  for (int card = 0; card < count; ++card) ids.push_back(cuda::bus_id_of(card));
  return ids;
}

base::Result<std::unique_ptr<Kernels>> make_cuda_kernels(int card) {
  int count = 0;
  if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    return no_card(cuda::failure_text("cudaGetDeviceCount", code));
  }
  if (card < 0 || card >= count) {
    return no_card(base::format("number {} is asked for and there are {}", card, count));
  }
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, card), "cudaGetDeviceProperties");
  if (properties.major < 8) {
    return no_card(
        base::format("card {}, {}, has compute capability {}.{}, and 8.0 is the oldest "
                     "that can multiply bf16",
                     card, properties.name, properties.major, properties.minor));
  }
  const auto blas = cuda::load_blas();
  if (!blas.ok()) return blas.failure();
  cuda::check(cudaSetDevice(card), "cudaSetDevice");
  return std::unique_ptr<Kernels>(std::make_unique<CudaKernels>(card, **blas));
}

}  // namespace trireme::device
