#include "device/cuda/products.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "device/rows.hpp"

#include <algorithm>
#include <cstdint>

namespace trireme::device::cuda {
namespace {

/// What the library asks for on Hopper.
constexpr std::size_t workspace_bytes = std::size_t{32} << 20;

cudaDataType_t type_of(DType dtype) {
  TRIREME_EXPECT(dtype != DType::i32, "products compute on f32 or bf16");
  return dtype == DType::f32 ? CUDA_R_32F : CUDA_R_16BF;
}

/// The library assumes 256 bytes unless told.
std::uint32_t alignment_of(const void* address) {
  const auto bits = reinterpret_cast<std::uintptr_t>(address);
  std::uint32_t alignment = 256;
  while (bits % alignment != 0) alignment /= 2;
  return alignment;
}

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

}  // namespace

struct Products::Shape {
  std::int64_t m = 0;
  std::int64_t n = 0;
  std::int64_t k = 0;
  bool transpose_a = false;
  bool transpose_b = false;
  std::int64_t stride_a = 0;
  std::int64_t stride_b = 0;
  std::int64_t stride_d = 0;
  DType in = DType::f32;
  DType out = DType::f32;
  bool bias = false;
  bool accumulate = false;
  std::uint32_t alignment_a = 0;
  std::uint32_t alignment_b = 0;
  std::uint32_t alignment_d = 0;

  auto operator<=>(const Shape&) const = default;
};

struct Products::Plan {
  cublasLtMatmulDescOpaque_t operation{};
  cublasLtMatrixLayoutOpaque_t a{};
  cublasLtMatrixLayoutOpaque_t b{};
  cublasLtMatrixLayoutOpaque_t d{};
  cublasLtMatmulAlgo_t algorithm{};
};

Products::Products(const Blas& blas, StreamView stream)
    : blas_(blas), stream_(stream), workspace_(allocate_device(workspace_bytes)) {
  check(blas_.create(&handle_), "cublasLtCreate");
}

Products::~Products() {
  const auto status = blas_.destroy(handle_);
  if (status != CUBLAS_STATUS_SUCCESS) {
    base::log::local::warning("device", "cublasLtDestroy: {}", blas_.status_text(status));
  }
}

void Products::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw base::Error(base::ExitCode::topology,
                    base::format("{}: {}", call, blas_.status_text(status)));
}

Products::Plan& Products::plan_for(const Shape& shape) {
  if (const auto known = plans_.find(shape); known != plans_.end()) return known->second;
  Plan plan;
  const auto compute = shape.in == DType::f32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
  check(blas_.init_operation(&plan.operation, sizeof(plan.operation), compute, CUDA_R_32F),
        "cublasLtMatmulDescInit");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(blas_.set_operation(&plan.operation, attribute, &value, sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, shape.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, shape.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (shape.bias) set(CUBLASLT_MATMUL_DESC_EPILOGUE, CUBLASLT_EPILOGUE_BIAS);
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t& matrix, DType dtype, bool transposed,
                          std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    if (transposed) std::swap(rows, columns);
    check(
        blas_.init_layout(&matrix, sizeof(matrix), type_of(dtype), static_cast<std::uint64_t>(rows),
                          static_cast<std::uint64_t>(columns), stride),
        "cublasLtMatrixLayoutInit");
  };
  layout(plan.a, shape.in, shape.transpose_a, shape.m, shape.k, shape.stride_a);
  layout(plan.b, shape.in, shape.transpose_b, shape.k, shape.n, shape.stride_b);
  layout(plan.d, shape.out, false, shape.m, shape.n, shape.stride_d);

  cublasLtMatmulPreferenceOpaque_t preference{};
  check(blas_.init_preference(&preference, sizeof(preference)), "cublasLtMatmulPreferenceInit");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(blas_.set_preference(&preference, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, shape.alignment_a);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, shape.alignment_b);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.alignment_d);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.alignment_d);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  check(blas_.heuristic(handle_, &plan.operation, &plan.a, &plan.b, &plan.d, &plan.d, &preference,
                        1, &best, &found),
        "cublasLtMatmulAlgoGetHeuristic");
  if (found == 0) {
    throw base::Error(base::ExitCode::topology,
                      base::format("cuBLASLt has no way to multiply {} x {} x {} in {}", shape.m,
                                   shape.k, shape.n, name(shape.in)));
  }
  plan.algorithm = best.algo;
  return plans_.emplace(shape, plan).first->second;
}

void Products::multiply(const Shape& given, const void* a, const void* b, const Tensor& bias,
                        void* d) {
  if (given.m == 0 || given.n == 0) return;
  auto shape = given;
  shape.bias = static_cast<bool>(bias);
  shape.alignment_a = alignment_of(a);
  shape.alignment_b = alignment_of(b);
  shape.alignment_d = alignment_of(d);
  auto& plan = plan_for(shape);
  if (bias) {
    const void* address = bias.raw();
    check(blas_.set_operation(&plan.operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address,
                              sizeof(address)),
          "cublasLtMatmulDescSetAttribute");
  }
  const float alpha = 1.0F;
  const float beta = shape.accumulate ? 1.0F : 0.0F;
  check(blas_.matmul(handle_, &plan.operation, &alpha, a, &plan.a, b, &plan.b, &beta, d, &plan.d, d,
                     &plan.d, &plan.algorithm, workspace_.get(), workspace_bytes, stream_.raw()),
        "cublasLtMatmul");
}

void Products::forward(const Tensor& x, const Tensor& w, const Tensor& bias, const Tensor& y) {
  const auto rows = Rows(x).count();
  expect_rows(x, rows, w.dim(1));
  expect_rows(y, rows, w.dim(0));
  TRIREME_EXPECT(!bias || bias.dtype() == y.dtype(), "a fused bias has the result's type");
  Shape shape;
  shape.m = w.dim(0);
  shape.n = rows;
  shape.k = w.dim(1);
  shape.transpose_a = true;
  shape.stride_a = row_stride(w);
  shape.stride_b = row_stride(x);
  shape.stride_d = row_stride(y);
  shape.in = x.dtype();
  shape.out = y.dtype();
  multiply(shape, w.raw(), x.raw(), bias, y.raw());
}

void Products::backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx,
                              bool accumulate) {
  const auto rows = Rows(dy).count();
  expect_rows(dy, rows, w.dim(0));
  expect_rows(dx, rows, w.dim(1));
  Shape shape;
  shape.m = w.dim(1);
  shape.n = rows;
  shape.k = w.dim(0);
  shape.stride_a = row_stride(w);
  shape.stride_b = row_stride(dy);
  shape.stride_d = row_stride(dx);
  shape.in = dy.dtype();
  shape.out = dx.dtype();
  shape.accumulate = accumulate;
  multiply(shape, w.raw(), dy.raw(), {}, dx.raw());
}

void Products::backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  const auto rows = Rows(x).count();
  expect_rows(dy, rows, dw.dim(0));
  expect_rows(x, rows, dw.dim(1));
  if (rows == 0) return;
  Shape shape;
  shape.m = dw.dim(1);
  shape.n = dw.dim(0);
  shape.k = rows;
  shape.transpose_b = true;
  shape.stride_a = row_stride(x);
  shape.stride_b = row_stride(dy);
  shape.stride_d = row_stride(dw);
  shape.in = dy.dtype();
  shape.out = dw.dtype();
  shape.accumulate = true;
  multiply(shape, x.raw(), dy.raw(), {}, dw.raw());
}

}  // namespace trireme::device::cuda
