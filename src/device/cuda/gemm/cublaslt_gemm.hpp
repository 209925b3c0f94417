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

/// The products of linear layers by cuBLASLt: fp32 without TF32, bf16 with sums in fp32, e4m3 with
/// scales that the card reads and sums in fp32 ("fast accumulation", which adds with fewer bits, is
/// off; compute capability 8.9). How one is
/// computed is what was chosen for it by timing, else what the library's heuristics name first; it
/// stays, so that a run repeats bit by bit.
class Products final : public ProductTuning {
 public:
  /// `card` is its name, as CUDA tells it.
  Products(const Blas& blas, StreamView stream, const std::string& card);
  ~Products() override;
  Products(const Products&) = delete;
  Products& operator=(const Products&) = delete;

  /// y = x * transpose(w).
  void forward(const Tensor& x, const Tensor& w, const Tensor& y);
  /// y = (x * transpose(w)) * both unscales, in bf16.
  void forward_quantised(const Quantised& x, const Quantised& w, const Tensor& y);
  void backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx, bool accumulate);
  /// dw += transpose(dy) * x.
  void backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw);

  // With more done on the way. False: the library does not do that, and nothing has been issued.

  /// y = x * transpose(w) + bias; the bias has y's type.
  bool forward_and_bias(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y);
  bool forward_quantised_and_bias(const Quantised& x, const Quantised& w, const Tensor& bias,
                                  const Tensor& y);
  /// wide = x * transpose(w) + bias, y = gelu(that, before it is rounded).
  bool gelu_forward(const ProductCall& call);
  /// d_wide = gelu'(wide) * (dy * w).
  bool backward_gelu(const ProductCall& call);
  /// dw += transpose(dy) * x, sums (f32 [out], overwritten) = column sums of dy.
  bool backward_weight_and_bias(const ProductCall& call);

  int choose(std::span<const ProductCall> calls) override;
  std::string text() const override { return choices_.text(); }
  std::string news() const override { return choices_.news(); }
  std::size_t size() const override { return choices_.size(); }
  base::Status adopt(std::span<const std::string> texts) override;
  std::string file_name() const override { return file_name_; }

 private:
  struct Plan;
  enum class Choice { made, known, not_offered };
  /// Stands for the choice that own kernels do what an epilogue would.
  static constexpr Algorithm declined{};

  // Plans are copied: the library takes their parts as if it changed them.
  void multiply(const ProductWork& work);
  bool try_multiply(const ProductWork& work);
  cublasStatus_t issue(Plan plan, const Algorithm& algorithm, const ProductWork& work);
  /// Null: the library has no way.
  Plan* plan_for(const MatrixProduct& product);
  void describe(const MatrixProduct& product, Plan& plan) const;
  /// What the library offers, as it ranks them; empty: nothing.
  std::vector<Algorithm> ways(const MatrixProduct& product, Plan plan) const;
  /// What was chosen, if the library still takes it.
  std::optional<Algorithm> chosen(const MatrixProduct& product, Plan plan) const;
  Choice choose(const MatrixProduct& product);
  /// The first of these forms of a call that the library offers; an epilogue must pay, or the form
  /// that leaves it to own kernels is taken.
  Choice choose_form(std::span<const ProductCall> forms);
  struct Timed {
    Algorithm algorithm{};
    double seconds = 0;
  };
  /// The fastest way; none: the library has none.
  std::optional<Timed> timed(const MatrixProduct& product);
  /// Says that own kernels do the rest.
  void warn_of(const MatrixProduct& product, cublasStatus_t status, const char* call) const;
  void check(cublasStatus_t status, const char* call) const;

  const Blas& blas_;
  StreamView stream_;
  cublasLtHandle_t handle_ = nullptr;
  DeviceMemory workspace_;
  std::string file_name_;
  ProductChoices choices_;
  std::map<MatrixProduct, std::optional<Plan>> plans_;
};

}  // namespace trireme::device::cuda
