#include "device/cuda/gemm/operands.hpp"

#include "trireme/base/format.hpp"

#include "device/rows.hpp"

#include <algorithm>
#include <tuple>

namespace trireme::device::cuda {
namespace {

using Kind = ProductCall::Kind;

std::int64_t row_stride(const Tensor& tensor) {
  const Rows rows(tensor);
  TRIREME_EXPECT(rows.evenly_spaced(), "a product needs evenly spaced rows: " + tensor.text());
  // Of a single row the distance to the next is free, but not less than its width.
  return rows.count() <= 1 ? std::max<std::int64_t>(rows.width(), 1) : rows.stride();
}

void expect_rows(const Tensor& tensor, std::int64_t rows, std::int64_t width) {
  TRIREME_EXPECT(Rows(tensor).count() == rows && Rows(tensor).width() == width,
                 base::format("a product needs [{}, {}]: {}", rows, width, tensor.text()));
}

/// y = x * transpose(w): d is y, [out, rows] to the library.
MatrixProduct forward_product(const Tensor& x, const Tensor& w, const Tensor& y) {
  const auto rows = Rows(x).count();
  expect_rows(x, rows, w.dim(1));
  expect_rows(y, rows, w.dim(0));
  MatrixProduct product;
  product.m = w.dim(0);
  product.n = rows;
  product.k = w.dim(1);
  product.transpose_a = true;
  product.stride_a = row_stride(w);
  product.stride_b = row_stride(x);
  product.stride_d = row_stride(y);
  product.in = x.dtype();
  product.out = y.dtype();
  return product;
}

/// The same of codes, which Hopper multiplies where both operands have the inner dimension in one
/// run and so many of them lie together.
MatrixProduct quantised_product(const ProductCall& call) {
  constexpr std::uint32_t codes_together = 16;
  const auto& [x, w, y] = std::tie(call.x, call.w, call.result);
  TRIREME_EXPECT(x.contiguous() && w.contiguous() && w.dim(1) % codes_together == 0 &&
                     w.dim(0) % codes_together == 0 && alignment_of(x.raw()) >= codes_together &&
                     alignment_of(w.raw()) >= codes_together,
                 "FP8 product: x " + x.text() + ", w " + w.text());
  TRIREME_EXPECT(y.dtype() == DType::bf16 && (!call.bias || call.bias.dtype() == DType::bf16),
                 "FP8 product: y and bias are bf16");
  constexpr std::int64_t bf16_together = 8;
  TRIREME_EXPECT(alignment_of(y.raw()) >= codes_together && row_stride(y) % bf16_together == 0,
                 "FP8 product: y's rows begin at multiples of 16 bytes");
  return forward_product(x, w, y);
}

/// dx = dy * w.
MatrixProduct input_product(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  const auto rows = Rows(dy).count();
  expect_rows(dy, rows, w.dim(0));
  expect_rows(dx, rows, w.dim(1));
  MatrixProduct product;
  product.m = w.dim(1);
  product.n = rows;
  product.k = w.dim(0);
  product.stride_a = row_stride(w);
  product.stride_b = row_stride(dy);
  product.stride_d = row_stride(dx);
  product.in = dy.dtype();
  product.out = dx.dtype();
  return product;
}

/// dw += transpose(dy) * x.
MatrixProduct weight_product(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  const auto rows = Rows(x).count();
  expect_rows(dy, rows, dw.dim(0));
  expect_rows(x, rows, dw.dim(1));
  MatrixProduct product;
  product.m = dw.dim(1);
  product.n = dw.dim(0);
  product.k = rows;
  product.transpose_b = true;
  product.stride_a = row_stride(x);
  product.stride_b = row_stride(dy);
  product.stride_d = row_stride(dw);
  product.in = dy.dtype();
  product.out = dw.dtype();
  product.accumulate = true;
  return product;
}

ProductWork with_epilogue(const ProductCall& call, Epilogue epilogue) {
  ProductWork work;
  auto& product = work.product;
  auto& operands = work.operands;
  operands.a = call.w.raw();
  operands.b = call.x.raw();
  operands.d = call.result.raw();
  switch (call.kind) {
    case Kind::forward:
    case Kind::gelu_forward:
      product = forward_product(call.x, call.w, call.result);
      break;
    case Kind::quantised_forward:
      product = quantised_product(call);
      operands.scale_a = call.w_unscale.raw();
      operands.scale_b = call.x_unscale.raw();
      break;
    case Kind::backward_input:
    case Kind::accumulate_input:
    case Kind::backward_gelu:
      product = input_product(call.x, call.w, call.result);
      product.accumulate = call.kind == Kind::accumulate_input;
      break;
    case Kind::backward_weight:
      product = weight_product(call.x, call.w, call.result);
      break;
  }
  product.epilogue = epilogue;
  product.alignment_a = alignment_of(operands.a);
  product.alignment_b = alignment_of(operands.b);
  product.alignment_d = alignment_of(operands.d);
  if (has_bias(epilogue)) operands.bias = call.bias.raw();
  if (call.wide && epilogue != Epilogue::none) {
    expect_rows(call.wide, Rows(call.result).count(), Rows(call.result).width());
    product.stride_aux = row_stride(call.wide);
    product.alignment_aux = alignment_of(call.wide.raw());
    operands.aux = call.wide.raw();
  }
  return work;
}

}  // namespace

std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  std::uint32_t alignment = 256;
  while (bits % alignment != 0) alignment /= 2;
  return alignment;
}

ProductWork work_of(const ProductCall& call) {
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
    case Kind::accumulate_input:
      break;
  }
  return with_epilogue(call, Epilogue::none);
}

bool fuses_bias(const Tensor& bias) {
  return alignment_of(bias.raw()) >= bias_alignment;
}

bool fuses(const ProductCall& call) {
  constexpr std::int64_t pack = 8;
  const bool empty = call.x.element_count() == 0 || call.result.element_count() == 0;
  if (call.x.dtype() != DType::bf16 || empty) return false;
  if (call.kind == Kind::backward_weight) return true;
  const bool of_one_type = call.wide.dtype() == DType::bf16 && call.result.dtype() == DType::bf16 &&
                           (!call.bias || call.bias.dtype() == DType::bf16);
  if (call.bias && !fuses_bias(call.bias)) return false;
  return of_one_type && row_stride(call.wide) % pack == 0 && alignment_of(call.wide.raw()) >= 16;
}

ProductCall unfused(const ProductCall& call) {
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

std::vector<ProductCall> forms_of(const ProductCall& call) {
  const bool does_more = call.wide || (call.kind == Kind::backward_weight && call.bias);
  std::vector<ProductCall> forms;
  if (does_more && fuses(call)) forms.push_back(call);
  forms.push_back(unfused(call));
  if (forms.back().bias) {
    forms.push_back(forms.back());
    forms.back().bias = {};
  }
  return forms;
}

}  // namespace trireme::device::cuda
