// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/operands.hpp"

#include "trireme/base/format.hpp"

#include "device/rows.hpp"

#include <algorithm>
#include <tuple>

namespace trireme::device::cuda {
namespace {

using Kind = GemmCall::Kind;

std::int64_t row_stride(const Tensor& tensor) {
  const Rows rows(tensor);
  // The row stride of a single row is free, but not less than its width.
  return rows.count() <= 1 ? std::max<std::int64_t>(rows.width(), 1) : rows.stride();
}

GemmDescriptor gemm_over(const Tensor& a, const Tensor& b, const Tensor& d) {
  GemmDescriptor descriptor;
  descriptor.stride_a = row_stride(a);
  descriptor.stride_b = row_stride(b);
  descriptor.stride_d = row_stride(d);
  descriptor.in = b.dtype();
  descriptor.out = d.dtype();
  return descriptor;
}

/// y = x * transpose(w): d is y, [out, rows] to the library.
GemmDescriptor forward_gemm(const Tensor& x, const Tensor& w, const Tensor& y) {
  auto descriptor = gemm_over(w, x, y);
  descriptor.m = w.dim(0);
  descriptor.n = Rows(x).count();
  descriptor.k = w.dim(1);
  descriptor.transpose_a = true;
  return descriptor;
}

/// GEMM of FP8 codes, which Hopper multiplies where both operands have the inner dimension in one
/// run and `codes_together` of them lie together.
GemmDescriptor quantised_gemm(const GemmCall& call) {
  constexpr std::uint32_t codes_together = 16;
  const auto& [x, w, y] = std::tie(call.x, call.w, call.result);
  TRIREME_EXPECT(w.dim(1) % codes_together == 0 && w.dim(0) % codes_together == 0 &&
                     alignment_of(x.raw()) >= codes_together &&
                     alignment_of(w.raw()) >= codes_together,
                 "FP8 product: x " + x.text() + ", w " + w.text());
  constexpr std::int64_t bf16_together = 8;
  TRIREME_EXPECT(alignment_of(y.raw()) >= codes_together && row_stride(y) % bf16_together == 0,
                 "FP8 product: y's rows begin at multiples of 16 bytes");
  return forward_gemm(x, w, y);
}

/// dx = dy * w.
GemmDescriptor input_gemm(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  auto descriptor = gemm_over(w, dy, dx);
  descriptor.m = w.dim(1);
  descriptor.n = Rows(dy).count();
  descriptor.k = w.dim(0);
  return descriptor;
}

/// dw += transpose(dy) * x.
GemmDescriptor weight_gemm(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  auto descriptor = gemm_over(x, dy, dw);
  descriptor.m = dw.dim(1);
  descriptor.n = dw.dim(0);
  descriptor.k = Rows(x).count();
  descriptor.transpose_b = true;
  descriptor.accumulate = true;
  return descriptor;
}

Gemm with_epilogue(const GemmCall& call, Epilogue epilogue) {
  Gemm gemm;
  auto& descriptor = gemm.descriptor;
  auto& operands = gemm.operands;
  operands.a = call.w.raw();
  operands.b = call.x.raw();
  operands.d = call.result.raw();
  switch (call.kind) {
    case Kind::forward:
    case Kind::gelu_forward:
      descriptor = forward_gemm(call.x, call.w, call.result);
      break;
    case Kind::quantised_forward:
      descriptor = quantised_gemm(call);
      operands.scale_a = call.w_unscale.raw();
      operands.scale_b = call.x_unscale.raw();
      break;
    case Kind::backward_input:
    case Kind::backward_gelu:
      descriptor = input_gemm(call.x, call.w, call.result);
      break;
    case Kind::backward_weight:
      descriptor = weight_gemm(call.x, call.w, call.result);
      break;
    case Kind::symmetric_product:
    case Kind::add_product:
      TRIREME_EXPECT(false, "a batch of matrices is several GEMMs: matrix_gemms()");
  }
  descriptor.epilogue = epilogue;
  descriptor.alignment_a = alignment_of(operands.a);
  descriptor.alignment_b = alignment_of(operands.b);
  descriptor.alignment_d = alignment_of(operands.d);
  if (has_bias(epilogue)) operands.bias = call.bias.raw();
  if (call.wide && epilogue != Epilogue::none) {
    descriptor.stride_aux = row_stride(call.wide);
    descriptor.alignment_aux = alignment_of(call.wide.raw());
    operands.aux = call.wide.raw();
  }
  return gemm;
}

}  // namespace

std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  std::uint32_t alignment = 256;
  while (bits % alignment != 0) alignment /= 2;
  return alignment;
}

Gemm gemm_of(const GemmCall& call) {
  switch (call.kind) {
    case Kind::forward:
    case Kind::quantised_forward:
      return with_epilogue(call, call.bias ? Epilogue::bias : Epilogue::none);
    case Kind::gelu_forward:
      return with_epilogue(call, call.bias ? Epilogue::gelu_bias : Epilogue::gelu);
    case Kind::backward_gelu:
      return with_epilogue(call, Epilogue::gelu_gradient);
    case Kind::backward_weight:
      return with_epilogue(call, call.bias ? Epilogue::bias_gradient : Epilogue::none);
    case Kind::backward_input:
    case Kind::symmetric_product:
    case Kind::add_product:
      break;
  }
  return with_epilogue(call, Epilogue::none);
}

bool fuses_bias(const Tensor& bias) {
  return alignment_of(bias.raw()) >= bias_alignment;
}

bool fuses(const GemmCall& call) {
  constexpr std::int64_t pack = 8;
  const bool empty = call.x.element_count() == 0 || call.result.element_count() == 0;
  if (call.x.dtype() != DType::bf16 || empty) return false;
  if (call.kind == Kind::backward_weight) return true;
  const bool of_one_type = call.wide.dtype() == DType::bf16 && call.result.dtype() == DType::bf16 &&
                           (!call.bias || call.bias.dtype() == DType::bf16);
  if (call.bias && !fuses_bias(call.bias)) return false;
  return of_one_type && row_stride(call.wide) % pack == 0 && alignment_of(call.wide.raw()) >= 16;
}

GemmCall unfused(const GemmCall& call) {
  auto plain = call;
  if (call.kind == Kind::gelu_forward) {
    plain.kind = Kind::forward;
    plain.result = call.wide;
  }
  if (call.kind == Kind::backward_gelu) plain.kind = Kind::backward_input;
  plain.wide = {};
  const bool of_another_kind =
      plain.bias && (plain.bias.dtype() != plain.result.dtype() || !fuses_bias(plain.bias));
  if (call.kind == Kind::backward_weight || of_another_kind) plain.bias = {};
  return plain;
}

std::vector<GemmCall> epilogue_variants(const GemmCall& call) {
  const bool does_more = call.wide || (call.kind == Kind::backward_weight && call.bias);
  std::vector<GemmCall> variants;
  if (does_more && fuses(call)) variants.push_back(call);
  variants.push_back(unfused(call));
  if (variants.back().bias) {
    variants.push_back(variants.back());
    variants.back().bias = {};
  }
  return variants;
}

}  // namespace trireme::device::cuda
