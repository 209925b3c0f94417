// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/device/data_sheet.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/attention/gpu_attention.hpp"
#include "device/cuda/decompositions/decompositions.hpp"
#include "device/cuda/gemm/cublaslt.hpp"
#include "device/cuda/gemm/linear_gemm.hpp"
#include "device/cuda/kernels/own_kernels.hpp"
#include "device/cuda/runtime/cuda_device.hpp"
#include "device/cuda/runtime/launcher.hpp"
#include "device/cuda/runtime/stream.hpp"

namespace trireme::device {
namespace {

class CudaKernels final : public cuda::OwnKernels<cuda::Launcher, cuda::LinearGemm> {
 public:
  CudaKernels(int gpu, const cuda::CublasLt& cublaslt, const std::string& gpu_name)
      : device_(gpu),
        cublaslt_(cublaslt),
        launcher_(device_),
        gemm_(cublaslt, device_.stream(), gpu_name) {}
  base::Status set_attention(const AttentionChoice& choice, int capability) {
    auto attention = cuda::GpuAttention::make(choice, {device_.stream(), capability}, *this);
    if (!attention.ok()) return attention.failure();
    attention_ = std::move(attention).value();
    return {};
  }

  const char* name() const override { return "cuda"; }
  Device& device() override { return device_; }
  std::string libraries() const override {
    // Version as an integer: 130002 is 13.0.2.
    const auto version = cublaslt_.version();
    const auto& attention = attention_->library();
    return base::format("products by cuBLASLt {}.{}.{}{}{}", version / 10000, version / 100 % 100,
                        version % 100, attention.empty() ? "" : ", ", attention);
  }
  base::Result<AttentionText> attention_text(const AttentionSize& size) const override {
    return attention_->text(size);
  }
  std::vector<LibraryMemory> library_memory() const override {
    std::vector<LibraryMemory> all{{"cuBLASLt", gemm_workspace_bytes},
                                   {"cuDNN", attention_->workspace_bytes()},
                                   {"own kernels", launcher_.workspace_bytes()}};
    if (decompositions_) all.push_back({"cuSOLVER", decompositions_->workspace_bytes()});
    return all;
  }
  void open_decompositions() override { decompositions(); }
  GemmTuning* gemm_tuning() override {
    // The caller is about to use the GPU.
    use_gpu();
    return &gemm_;
  }

  // Each sum has a place of its own for its result, which a CUDA graph would write again.
  void start_sum_of_squares(const Tensor& x) override {
    device_.expect_no_capture("a sum for the host");
    cuda::start_sum_of_squares(start(), x);
  }
  void start_sum(const Tensor& x) override {
    device_.expect_no_capture("a sum for the host");
    cuda::start_sum(start(), x);
  }
  std::vector<double> finish_sums() override {
    use_gpu();
    return launcher_.read_answers();
  }
  void synchronize() override { device_.synchronize(); }

 private:
  void use_gpu() const { device_.use(); }
  cuda::Launcher& start() override {
    use_gpu();
    launcher_.reset();
    return launcher_;
  }
  cuda::LinearGemm& gemm() override {
    use_gpu();
    return gemm_;
  }
  bool multiply_and_add_bias_gradient(const LinearBackwardWeight& linear) override {
    auto& launcher = start();
    // The library overwrites; gradients are added to.
    const auto& d_bias = linear.d_bias;
    const Tensor sums(launcher.take(d_bias.byte_count()), DType::f32, {d_bias.dim(0)});
    if (!gemm_.backward_weight_and_bias(
            gemm_call(LinearBackwardWeight{linear.dy, linear.x, linear.dw, sums}))) {
      return false;
    }
    cuda::issue_own(launcher, Accumulate{sums, d_bias});
    return true;
  }
  cuda::Decompositions& decompositions() {
    use_gpu();
    if (!decompositions_) {
      decompositions_ = base::value_or_throw(cuda::open_decompositions(device_));
      base::log::info("device", "eigenvectors and QR decompositions by {}",
                      decompositions_->library());
    }
    return *decompositions_;
  }
  void decompose(const SymmetricEigenvectors& operation) override {
    decompositions().run(operation);
  }
  void decompose(const OrthonormaliseRows& operation) override { decompositions().run(operation); }
  bool run_fused(const Attention& attention) override {
    use_gpu();
    auto* const fused = attention_->fused();
    return fused != nullptr && fused->forward(attention);
  }
  bool run_fused(const AttentionBackward& backward) override {
    use_gpu();
    auto* const fused = attention_->fused();
    return fused != nullptr && fused->backward(backward);
  }

  cuda::CudaDevice device_;
  const cuda::CublasLt& cublaslt_;
  cuda::Launcher launcher_;
  cuda::LinearGemm gemm_;
  std::unique_ptr<cuda::GpuAttention> attention_;
  /// Null until a run needs it.
  std::unique_ptr<cuda::Decompositions> decompositions_;
};

/// Reason why the runtime sees no GPU. One error code of the runtime stands for a driver that is
/// too old and for none.
std::string reason_of(cudaError_t code) {
  int driver = 0;
  int runtime = 0;
  const bool told = cudaDriverGetVersion(&driver) == cudaSuccess &&
                    cudaRuntimeGetVersion(&runtime) == cudaSuccess;
  if (code != cudaErrorInsufficientDriver || !told) {
    return cuda::failure_text("cudaGetDeviceCount", code);
  }
  if (driver == 0) return "there is no NVIDIA driver, or libcuda.so.1 is not found";
  // 13000 is 13.0; a driver serves every program of its own major version.
  return base::format(
      "the NVIDIA driver serves programs up to CUDA {}.{}, and this one is of {}.{}", driver / 1000,
      driver / 10 % 100, runtime / 1000, runtime / 10 % 100);
}

base::Failure no_gpu(const std::string& reason) {
  return {base::ExitCode::topology,
          base::format("numerics.backend = cuda finds no GPU ({}); run on a node with an NVIDIA "
                       "GPU and its driver, or use cpu",
                       reason)};
}

}  // namespace

base::Result<std::vector<std::string>> gpu_bus_ids() {
  int count = 0;
  if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    return no_gpu(reason_of(code));
  }
  std::vector<std::string> ids;
  for (int gpu = 0; gpu < count; ++gpu) ids.push_back(cuda::bus_id_of(gpu));
  return ids;
}

base::Result<std::string> gpu_name(std::string_view bus_id) {
  const auto ids = gpu_bus_ids();
  if (!ids.ok()) return ids.failure();
  const auto found = std::find(ids->begin(), ids->end(), bus_id);
  if (found == ids->end()) return no_gpu(base::format("none is at {}", bus_id));
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, static_cast<int>(found - ids->begin())),
              "cudaGetDeviceProperties");
  return std::string(properties.name);
}

base::Result<std::unique_ptr<Kernels>> make_cuda_kernels(int gpu,
                                                         const AttentionChoice& attention) {
  int count = 0;
  if (const auto code = cudaGetDeviceCount(&count); code != cudaSuccess) {
    return no_gpu(reason_of(code));
  }
  if (gpu < 0 || gpu >= count) {
    return no_gpu(base::format("number {} is asked for and there are {}", gpu, count));
  }
  cudaDeviceProp properties{};
  cuda::check(cudaGetDeviceProperties(&properties, gpu), "cudaGetDeviceProperties");
  if (properties.major < 8) {
    return no_gpu(
        base::format("GPU {}, {}, has compute capability {}.{}, and 8.0 is the oldest "
                     "that can multiply bf16",
                     gpu, properties.name, properties.major, properties.minor));
  }
  const auto cublaslt = cuda::load_cublaslt();
  if (!cublaslt.ok()) return cublaslt.failure();
  cuda::check(cudaSetDevice(gpu), "cudaSetDevice");
  auto kernels = std::make_unique<CudaKernels>(gpu, **cublaslt, properties.name);
  const int capability = 10 * properties.major + properties.minor;
  auto status = kernels->set_attention(attention, capability);
  if (!status.ok()) return status.failure();
  return std::unique_ptr<Kernels>(std::move(kernels));
}

}  // namespace trireme::device
