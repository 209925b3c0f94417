#include "device/cuda/fp8_products.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "device/cuda/product_work.hpp"
#include "device/rows.hpp"

#include <algorithm>
#include <cstdint>

namespace trireme::device::cuda {
namespace {

/// Codes are read so many at a time.
constexpr std::uint32_t codes_together = 16;
constexpr std::size_t workspace_bytes = product_workspace_bytes;

void expect_operands(const Quantised& x, const Quantised& w, const Tensor& bias, const Tensor& y) {
  const Rows rows(y);
  TRIREME_EXPECT(x.codes.dim(1) == w.codes.dim(1) && x.codes.dim(1) % codes_together == 0 &&
                     w.codes.dim(0) % codes_together == 0 && rows.width() == w.codes.dim(0) &&
                     rows.count() == x.codes.dim(0) && rows.evenly_spaced(),
                 "FP8 product: x " + x.codes.text() + ", w " + w.codes.text() + ", y " + y.text());
  TRIREME_EXPECT(x.codes.contiguous() && w.codes.contiguous() &&
                     alignment_of(x.codes.raw()) >= codes_together &&
                     alignment_of(w.codes.raw()) >= codes_together,
                 "FP8 product: codes lie in one run from a multiple of 16 bytes");
  TRIREME_EXPECT(y.dtype() == DType::bf16 && (!bias || bias.dtype() == DType::bf16),
                 "FP8 product: y and bias are bf16");
}

}  // namespace

Fp8Products::~Fp8Products() {
  if (handle_ == nullptr) return;
  const auto status = blas_.destroy(handle_);
  if (status != CUBLAS_STATUS_SUCCESS) {
    base::log::local::warning("device", "cublasLtDestroy: {}", blas_.status_text(status));
  }
}

void Fp8Products::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw base::Error(base::ExitCode::topology,
                    base::format("{}: {}", call, blas_.status_text(status)));
}

void Fp8Products::set(Plan& plan, cublasLtMatmulDescAttributes_t attribute, const void* value,
                      std::size_t bytes) const {
  check(blas_.set_operation(&plan.operation, attribute, value, bytes),
        "cublasLtMatmulDescSetAttribute");
}

void Fp8Products::describe(const Shape& shape, Plan& plan) const {
  check(
      blas_.init_operation(&plan.operation, sizeof(plan.operation), CUBLAS_COMPUTE_32F, CUDA_R_32F),
      "cublasLtMatmulDescInit");
  const auto transposed = CUBLAS_OP_T;
  const auto plain = CUBLAS_OP_N;
  const std::int8_t fast_accumulation = 0;
  set(plan, CUBLASLT_MATMUL_DESC_TRANSA, &transposed, sizeof(transposed));
  set(plan, CUBLASLT_MATMUL_DESC_TRANSB, &plain, sizeof(plain));
  set(plan, CUBLASLT_MATMUL_DESC_FAST_ACCUM, &fast_accumulation, sizeof(fast_accumulation));
  if (shape.bias) {
    const auto epilogue = CUBLASLT_EPILOGUE_BIAS;
    const auto type = CUDA_R_16BF;
    set(plan, CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof(epilogue));
    set(plan, CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, &type, sizeof(type));
  }
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t& matrix, cudaDataType_t type,
                          std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    check(blas_.init_layout(&matrix, sizeof(matrix), type, static_cast<std::uint64_t>(rows),
                            static_cast<std::uint64_t>(columns), stride),
          "cublasLtMatrixLayoutInit");
  };
  layout(plan.w, CUDA_R_8F_E4M3, shape.in, shape.out, shape.in);
  layout(plan.x, CUDA_R_8F_E4M3, shape.in, shape.rows, shape.in);
  layout(plan.y, CUDA_R_16BF, shape.out, shape.rows, shape.stride_y);
}

void Fp8Products::choose(const Shape& shape, Plan& plan) const {
  cublasLtMatmulPreferenceOpaque_t preference{};
  check(blas_.init_preference(&preference, sizeof(preference)), "cublasLtMatmulPreferenceInit");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(blas_.set_preference(&preference, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, workspace_bytes);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, codes_together);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, codes_together);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, shape.alignment_y);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, shape.alignment_y);
  cublasLtMatmulHeuristicResult_t best{};
  int found = 0;
  const auto status = blas_.heuristic(handle_, &plan.operation, &plan.w, &plan.x, &plan.y, &plan.y,
                                      &preference, 1, &best, &found);
  if (status != CUBLAS_STATUS_SUCCESS || found == 0) {
    throw base::Error(
        base::ExitCode::topology,
        base::format("cuBLASLt has no way to multiply {} x {} x {} in FP8: {} (cards of compute "
                     "capability 8.9 and newer do it); use numerics.precision = bf16",
                     shape.rows, shape.in, shape.out, blas_.status_text(status)));
  }
  plan.algorithm = best.algo;
  plan.chosen = true;
}

Fp8Products::Plan& Fp8Products::plan_for(const Shape& shape) {
  if (const auto known = plans_.find(shape); known != plans_.end()) return known->second;
  if (handle_ == nullptr) check(blas_.create(&handle_), "cublasLtCreate");
  Plan plan;
  describe(shape, plan);
  return plans_.emplace(shape, plan).first->second;
}

void Fp8Products::forward(const Quantised& x, const Quantised& w, const Tensor& bias,
                          const Tensor& y) {
  expect_operands(x, w, bias, y);
  const Rows rows(y);
  if (rows.count() == 0) return;
  const auto stride = rows.count() == 1 ? rows.width() : rows.stride();
  const Shape shape{rows.count(), x.codes.dim(1),        w.codes.dim(0),
                    stride,       alignment_of(y.raw()), static_cast<bool>(bias)};
  auto& plan = plan_for(shape);
  const void* scale_of_w = w.unscale.raw();
  const void* scale_of_x = x.unscale.raw();
  set(plan, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, &scale_of_w, sizeof(scale_of_w));
  set(plan, CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, &scale_of_x, sizeof(scale_of_x));
  if (bias) {
    const void* address = bias.raw();
    set(plan, CUBLASLT_MATMUL_DESC_BIAS_POINTER, &address, sizeof(address));
  }
  if (!plan.chosen) choose(shape, plan);
  const float alpha = 1.0F;
  const float beta = 0.0F;
  check(blas_.matmul(handle_, &plan.operation, &alpha, w.codes.raw(), &plan.w, x.codes.raw(),
                     &plan.x, &beta, y.raw(), &plan.y, y.raw(), &plan.y, &plan.algorithm,
                     workspace_, workspace_bytes, stream_.raw()),
        "cublasLtMatmul");
}

}  // namespace trireme::device::cuda
