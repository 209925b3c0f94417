// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include "unit/device/test_tensor.hpp"

#include <cstdint>
#include <initializer_list>
#include <vector>

namespace trireme::device::test {

inline constexpr std::int64_t rows = 24;
inline constexpr std::int64_t in = 32;
inline constexpr std::int64_t out = 48;

/// The operands of a layer's GEMMs, from one block: addresses are multiples of 128,
/// but for the bias, which lies `shift` elements further.
class GemmLayer {
 public:
  explicit GemmLayer(std::int64_t shift = 0)
      : arena_(Arena::host(Purpose::activations, std::size_t{1} << 20)),
        x_(add(DType::bf16, {rows, in})),
        w_(add(DType::bf16, {out, in})),
        bias_(add(DType::bf16, {out + shift}).slice(0, shift, out)),
        wide_(add(DType::bf16, {rows, out})),
        y_(add(DType::bf16, {rows, out})),
        down_(add(DType::bf16, {in, out})),
        d_wide_(add(DType::bf16, {rows, out})),
        dw_(add(DType::f32, {out, in})),
        d_bias_(add(DType::f32, {out})) {}

  /// Every GEMM of the layer: of each epilogue one, and some without.
  void run(Kernels& kernels) const {
    kernels.issue(LinearForward{x_, w_, bias_, y_});
    kernels.issue(LinearGeluForward{x_, w_, {}, wide_, y_});
    kernels.issue(LinearGeluForward{x_, w_, bias_, wide_, y_});
    kernels.issue(LinearBackwardGelu{x_, down_, wide_, d_wide_});
    kernels.issue(LinearBackwardWeight{d_wide_, x_, dw_, d_bias_});
    kernels.issue(LinearBackwardInput{y_, w_, x_});
    kernels.issue(LinearForward{x_, w_, {}, y_});
  }
  std::vector<GemmCall> calls() const {
    std::vector<GemmCall> all;
    run(*make_gemm_collecting_kernels(all));
    return all;
  }
  const Tensor& x() const { return x_; }
  const Tensor& w() const { return w_; }
  const Tensor& y() const { return y_; }
  static std::vector<float> values(const Tensor& tensor) {
    TestTensor copy(tensor.dtype(), {tensor.element_count()});
    make_reference_kernels()->issue(Copy{tensor.reshape({tensor.element_count()}), copy});
    return copy.values();
  }
  /// Results of all GEMMs, one after another.
  std::vector<std::vector<float>> results() const {
    std::vector<std::vector<float>> all;
    for (const auto& each : {x_, wide_, y_, d_wide_, dw_, d_bias_}) all.push_back(values(each));
    return all;
  }

 private:
  Tensor add(DType type, std::initializer_list<std::int64_t> shape) {
    const auto tensor = arena_.allocate(type, shape);
    const auto count = tensor.element_count();
    TestTensor numbers(type, {count});
    numbers.randomise(static_cast<std::uint64_t>(++added_), 0.5F);
    make_reference_kernels()->issue(Copy{numbers, tensor.reshape({count})});
    return tensor;
  }

  int added_ = 0;
  Arena arena_;
  Tensor x_, w_, bias_, wide_, y_, down_, d_wide_, dw_, d_bias_;
};

}  // namespace trireme::device::test
