// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"
#include "trireme/device/tensor.hpp"

#include "device/cuda/gemm/cublaslt.hpp"
#include "device/cuda/gemm/operands.hpp"
#include "device/cuda/gemm/tuning_cache.hpp"
#include "device/cuda/runtime/launcher.hpp"
#include "device/cuda/runtime/stream.hpp"

#include <map>
#include <optional>
#include <vector>

namespace trireme::device::cuda {

/// GEMMs of linear layers by cuBLASLt: fp32 without TF32, bf16 with sums in fp32, e4m3 with scales
/// that the GPU reads and sums in fp32 ("fast accumulation", which adds with fewer bits, is off;
/// compute capability 8.9). The algorithm of one is that of the tuning cache, else what the
/// library's heuristics name first; it stays, so that a run repeats bit by bit.
class LinearGemm final : public GemmTuning {
 public:
  /// `gpu` is the GPU's name, as CUDA gives it.
  LinearGemm(const CublasLt& library, StreamView stream, const std::string& gpu);
  ~LinearGemm() override;
  LinearGemm(const LinearGemm&) = delete;
  LinearGemm& operator=(const LinearGemm&) = delete;

  /// y = x * transpose(w).
  void forward(const Tensor& x, const Tensor& w, const Tensor& y);
  /// y = (x * transpose(w)) * both unscales, in bf16.
  void forward_quantised(const Quantised& x, const Quantised& w, const Tensor& y);
  void backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx);
  /// SymmetricProduct by its call; the triangles that it has computed.
  Triangles symmetric_product(const GemmCall& call);
  /// AddProduct by its call.
  void add_product(const GemmCall& call);
  /// dw += transpose(dy) * x.
  void backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw);

  // GEMMs with an epilogue. False: the library does not do that, and nothing has been issued.

  /// y = x * transpose(w) + bias; the bias has y's type.
  bool forward_and_bias(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
  bool forward_quantised_and_bias(const Quantised& x, const Quantised& w, const Tensor& bias,
                                  const Tensor& y);
  /// wide = x * transpose(w) + bias, y = gelu(that, before it is rounded).
  bool gelu_forward(const GemmCall& call);
  /// d_wide = gelu'(wide) * (dy * w).
  bool backward_gelu(const GemmCall& call);
  /// dw += transpose(dy) * x, sums (f32 [out], overwritten) = column sums of dy.
  bool backward_weight_and_bias(const GemmCall& call);

  int choose(std::span<const GemmCall> calls) override;
  std::string text() const override { return cache_.text(); }
  std::string news() const override { return cache_.news(); }
  std::size_t size() const override { return cache_.size(); }
  base::Status adopt(std::span<const std::string> texts) override;
  std::string file_name() const override { return file_name_; }

 private:
  struct Plan;
  enum class Choice { made, known, not_offered };
  /// Entry of the cache for an epilogue that does not pay: own kernels do its work.
  static constexpr Algorithm fallback{};

  // Plans are copied: the library takes their parts as if it changed them.
  void multiply(const Gemm& gemm);
  /// One call for a batch, or one for each of its matrices where the algorithm takes no batches:
  /// the bits are the same.
  void multiply_batch(const Gemm& gemm);
  bool try_multiply(const Gemm& gemm);
  cublasStatus_t issue(Plan plan, const Algorithm& algorithm, const Gemm& gemm);
  /// Plan of a GEMM; null: the library has no algorithm for it.
  Plan* plan_for(const GemmDescriptor& descriptor);
  void describe(const GemmDescriptor& descriptor, Plan& plan) const;
  void describe_matrices(const GemmDescriptor& descriptor, Plan& plan) const;
  void prefer_reductions(const GemmDescriptor& descriptor,
                         cublasLtMatmulPreferenceOpaque_t& preference) const;
  /// Plan of a batch: the algorithm of one matrix, if it takes so many.
  Plan* plan_for_batch(const GemmDescriptor& descriptor);
  /// Verdict of the library on an algorithm, and whether the workspace suffices it.
  struct Verdict {
    cublasStatus_t status = CUBLAS_STATUS_SUCCESS;
    bool fits = false;
  };
  Verdict judge(Plan plan, const Algorithm& algorithm) const;
  /// Algorithms that the library offers, as it ranks them; empty: none.
  std::vector<Algorithm> candidates(const GemmDescriptor& descriptor, Plan plan) const;
  /// Algorithm in the cache, if the library still takes it.
  std::optional<Algorithm> chosen(const GemmDescriptor& descriptor, Plan plan) const;
  Choice choose(const GemmDescriptor& descriptor);
  /// Chooses for the first of a call's variants that the library offers; an epilogue must pay, or
  /// the variant that leaves its work to own kernels is taken.
  Choice choose_epilogue(std::span<const GemmCall> variants);
  struct Timed {
    Algorithm algorithm{};
    double seconds = 0;
  };
  /// Fastest of the candidates, timed; none: the library has none.
  std::optional<Timed> fastest_candidate(const GemmDescriptor& descriptor);
  /// Logs that own kernels do the rest.
  void warn_of(const GemmDescriptor& descriptor, cublasStatus_t status, const char* call) const;
  void check(cublasStatus_t status, const char* call) const;

  const CublasLt& library_;
  StreamView stream_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_;
  std::string file_name_;
  TuningCache cache_;
  std::map<GemmDescriptor, std::optional<Plan>> plans_;
};

}  // namespace trireme::device::cuda
