// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/linear_gemm.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "device/cuda/gemm/plan.hpp"

#include <array>
#include <bit>
#include <cctype>
#include <cstdint>
#include <tuple>

namespace trireme::device::cuda {
namespace {

constexpr std::size_t workspace_bytes = gemm_workspace_bytes;
/// Candidates from the top of the library's ranking; later ones have hardly ever won.
constexpr int most_candidates = 8;

cudaDataType_t type_of(DType dtype) {
  switch (dtype) {
    case DType::f32:
      return CUDA_R_32F;
    case DType::bf16:
      return CUDA_R_16BF;
    case DType::e4m3:
      return CUDA_R_8F_E4M3;
    case DType::i32:
      break;
  }
  TRIREME_EXPECT(false, "products compute on f32, bf16 or e4m3");
  return CUDA_R_32F;
}

/// Stand-in for an address that the heuristics do not follow: its alignment is all they look at.
const void* somewhere(std::uint32_t alignment) {
  return reinterpret_cast<const void*>(std::uintptr_t{alignment});
}

cublasLtEpilogue_t epilogue_of(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::none:
      return CUBLASLT_EPILOGUE_DEFAULT;
    case Epilogue::bias:
      return CUBLASLT_EPILOGUE_BIAS;
    case Epilogue::gelu:
      return CUBLASLT_EPILOGUE_GELU_AUX;
    case Epilogue::gelu_bias:
      return CUBLASLT_EPILOGUE_GELU_AUX_BIAS;
    case Epilogue::gelu_gradient:
      return CUBLASLT_EPILOGUE_DGELU;
    case Epilogue::bias_gradient:
      return CUBLASLT_EPILOGUE_BGRADB;
  }
  return CUBLASLT_EPILOGUE_DEFAULT;
}

std::string target_of(const CublasLt& library, const std::string& gpu) {
  return base::format("{}, cuBLASLt {}, sums in fp32, workspace {}", gpu, library.version(),
                      workspace_bytes);
}

/// "products-nvidia-h200-130002.json".
std::string file_name_of(const CublasLt& library, const std::string& gpu) {
  std::string name;
  for (const char letter : gpu) {
    const auto code = static_cast<unsigned char>(letter);
    name += std::isalnum(code) != 0 ? static_cast<char>(std::tolower(code)) : '-';
  }
  return base::format("products-{}-{}.json", name, library.version());
}

}  // namespace

LinearGemm::LinearGemm(const CublasLt& library, StreamView stream, const std::string& gpu)
    : library_(library),
      stream_(stream),
      workspace_(allocate_device(workspace_bytes)),
      file_name_(file_name_of(library, gpu)),
      cache_(target_of(library, gpu)) {
  check(library_.create(&handle_), "cublasLtCreate");
}

LinearGemm::~LinearGemm() {
  const auto status = library_.destroy(handle_);
  if (status != CUBLAS_STATUS_SUCCESS) {
    base::log::local::warning("device", "cublasLtDestroy: {}", library_.status_text(status));
  }
}

void LinearGemm::check(cublasStatus_t status, const char* call) const {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  throw base::Error(base::ExitCode::topology,
                    base::format("{}: {}", call, library_.status_text(status)));
}

void LinearGemm::warn_of(const GemmDescriptor& descriptor, cublasStatus_t status,
                         const char* call) const {
  base::log::local::warning("device", "{} of the product {}: {}; own kernels do the rest", call,
                            descriptor.text(), library_.status_text(status));
}

void LinearGemm::describe(const GemmDescriptor& descriptor, Plan& plan) const {
  const auto compute =
      descriptor.in == DType::f32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
  check(library_.init_operation(&plan.operation, sizeof(plan.operation), compute, CUDA_R_32F),
        "cublasLtMatmulDescInit");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(library_.set_operation(&plan.operation, attribute, static_cast<const void*>(&value),
                                 sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, descriptor.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, descriptor.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(descriptor.epilogue));
  // The heuristics take alignments from addresses that they do not follow; none means any.
  if (has_bias(descriptor.epilogue)) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, somewhere(bias_alignment));
  }
  if (descriptor.stride_aux != 0) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, descriptor.stride_aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, somewhere(descriptor.alignment_aux));
  }
  if (descriptor.in == DType::e4m3) {
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{0});
    if (descriptor.epilogue == Epilogue::bias) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(descriptor.out));
    }
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, somewhere(sizeof(float)));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, somewhere(sizeof(float)));
  }
  describe_matrices(descriptor, plan);
}

void LinearGemm::describe_matrices(const GemmDescriptor& descriptor, Plan& plan) const {
  struct Shape {
    DType dtype;
    std::int64_t rows;
    std::int64_t columns;
    std::int64_t stride;
    std::int64_t batch_stride;
  };
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t& matrix, bool transposed, Shape shape) {
    if (transposed) std::swap(shape.rows, shape.columns);
    check(library_.init_layout(&matrix, sizeof(matrix), type_of(shape.dtype),
                               static_cast<std::uint64_t>(shape.rows),
                               static_cast<std::uint64_t>(shape.columns), shape.stride),
          "cublasLtMatrixLayoutInit");
    if (descriptor.matrices <= 1) return;
    const auto set = [&](cublasLtMatrixLayoutAttribute_t attribute, const auto& value) {
      check(library_.set_layout(&matrix, attribute, &value, sizeof(value)),
            "cublasLtMatrixLayoutSetAttribute");
    };
    set(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, static_cast<std::int32_t>(descriptor.matrices));
    set(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, shape.batch_stride);
  };
  const auto& [m, n, k] = std::tie(descriptor.m, descriptor.n, descriptor.k);
  layout(plan.a, descriptor.transpose_a,
         {descriptor.in, m, k, descriptor.stride_a, descriptor.batch_stride_a});
  layout(plan.b, descriptor.transpose_b,
         {descriptor.in, k, n, descriptor.stride_b, descriptor.batch_stride_b});
  layout(plan.d, false, {descriptor.out, m, n, descriptor.stride_d, descriptor.batch_stride_d});
  plan.c = plan.d;
  if (descriptor.stride_c == 0) return;
  layout(plan.c, false, {descriptor.out, m, n, descriptor.stride_c, descriptor.batch_stride_c});
}

void LinearGemm::prefer_reductions(const GemmDescriptor& descriptor,
                                   cublasLtMatmulPreferenceOpaque_t& preference) const {
  if (descriptor.out == DType::f32 && descriptor.matrices == 0) return;
  // The default reduction scheme may round parts of a split sum to the result's type before they
  // are added. Sums of matrices of a batch are not split: their workspace would grow with the
  // batch.
  const auto schemes =
      static_cast<std::uint32_t>(descriptor.matrices > 0 ? CUBLASLT_REDUCTION_SCHEME_NONE
                                                         : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE);
  check(library_.set_preference(&preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &schemes,
                                sizeof(schemes)),
        "cublasLtMatmulPreferenceSetAttribute");
}

std::vector<Algorithm> LinearGemm::candidates(const GemmDescriptor& descriptor, Plan plan) const {
  cublasLtMatmulPreferenceOpaque_t preference{};
  check(library_.init_preference(&preference, sizeof(preference)), "cublasLtMatmulPreferenceInit");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(library_.set_preference(&preference, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  prefer_reductions(descriptor, preference);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, descriptor.alignment_a);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, descriptor.alignment_b);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES,
         descriptor.stride_c > 0 ? descriptor.alignment_c : descriptor.alignment_d);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, descriptor.alignment_d);
  std::array<cublasLtMatmulHeuristicResult_t, most_candidates> results{};
  int found = 0;
  const auto status =
      library_.heuristic(handle_, &plan.operation, &plan.a, &plan.b, &plan.c, &plan.d, &preference,
                         most_candidates, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  if (status != CUBLAS_STATUS_SUCCESS && descriptor.epilogue != Epilogue::none) {
    warn_of(descriptor, status, "cublasLtMatmulAlgoGetHeuristic");
    return {};
  }
  check(status, "cublasLtMatmulAlgoGetHeuristic");
  std::vector<Algorithm> algorithms;
  for (int index = 0; index < found; ++index) {
    const auto& result = results[static_cast<std::size_t>(index)];
    if (result.state != CUBLAS_STATUS_SUCCESS) continue;
    algorithms.push_back(std::bit_cast<Algorithm>(result.algo));
  }
  return algorithms;
}

LinearGemm::Verdict LinearGemm::judge(Plan plan, const Algorithm& algorithm) const {
  const auto theirs = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
  cublasLtMatmulHeuristicResult_t result{};
  const auto status = library_.check_algorithm(handle_, &plan.operation, &plan.a, &plan.b, &plan.c,
                                               &plan.d, &theirs, &result);
  return {status, status == CUBLAS_STATUS_SUCCESS && result.workspaceSize <= workspace_bytes};
}

std::optional<Algorithm> LinearGemm::chosen(const GemmDescriptor& descriptor, Plan plan) const {
  const auto* const algorithm = cache_.find(descriptor.text());
  if (algorithm == nullptr) return std::nullopt;
  const auto [status, fits] = judge(plan, *algorithm);
  if (fits) return *algorithm;
  const bool taken = status == CUBLAS_STATUS_SUCCESS;
  base::log::local::warning(
      "device", "the choice for the product {} is passed over: {} (it may be from a damaged file)",
      descriptor.text(), taken ? "it needs more workspace" : library_.status_text(status));
  return std::nullopt;
}

LinearGemm::Plan* LinearGemm::plan_for(const GemmDescriptor& descriptor) {
  if (const auto known = plans_.find(descriptor); known != plans_.end()) {
    return known->second ? &*known->second : nullptr;
  }
  if (descriptor.matrices > 1) return plan_for_batch(descriptor);
  const auto* const known = cache_.find(descriptor.text());
  if (known != nullptr && *known == fallback && can_go_without(descriptor.epilogue)) {
    plans_.emplace(descriptor, std::nullopt);
    return nullptr;
  }
  Plan plan;
  describe(descriptor, plan);
  if (const auto algorithm = chosen(descriptor, plan)) {
    plan.algorithm = *algorithm;
  } else {
    const auto all = candidates(descriptor, plan);
    if (all.empty()) {
      plans_.emplace(descriptor, std::nullopt);
      return nullptr;
    }
    plan.algorithm = all.front();
  }
  return &*plans_.emplace(descriptor, plan).first->second;
}

cublasStatus_t LinearGemm::issue(Plan plan, const Algorithm& algorithm, const Gemm& gemm) {
  const auto point = [&](cublasLtMatmulDescAttributes_t attribute, const void* address) {
    check(library_.set_operation(&plan.operation, attribute, static_cast<const void*>(&address),
                                 sizeof(address)),
          "cublasLtMatmulDescSetAttribute");
  };
  const auto& operands = gemm.operands;
  if (operands.bias != nullptr) point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (operands.scale_a != nullptr) point(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.scale_a);
  if (operands.scale_b != nullptr) point(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.scale_b);
  if (operands.aux != nullptr) point(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
  const float beta = gemm.descriptor.accumulate ? gemm.beta : 0.0F;
  const void* const c = operands.c != nullptr ? operands.c : operands.d;
  const auto theirs = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
  return library_.matmul(handle_, &plan.operation, &gemm.alpha, operands.a, &plan.a, operands.b,
                         &plan.b, &beta, c, &plan.c, operands.d, &plan.d, &theirs, workspace_.get(),
                         workspace_bytes, stream_.raw());
}

bool LinearGemm::try_multiply(const Gemm& gemm) {
  const auto* const plan = plan_for(gemm.descriptor);
  if (plan == nullptr) return false;
  const auto status = issue(*plan, plan->algorithm, gemm);
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  if (gemm.descriptor.epilogue == Epilogue::none) check(status, "cublasLtMatmul");
  warn_of(gemm.descriptor, status, "cublasLtMatmul");
  plans_[gemm.descriptor] = std::nullopt;
  return false;
}

void LinearGemm::multiply(const Gemm& gemm) {
  const auto& descriptor = gemm.descriptor;
  if (descriptor.m == 0 || descriptor.n == 0) return;
  if (try_multiply(gemm)) return;
  throw base::Error(
      base::ExitCode::topology,
      base::format("cuBLASLt has no way to multiply {} x {} x {} in {}{}", descriptor.m,
                   descriptor.k, descriptor.n, device::name(descriptor.in),
                   descriptor.in == DType::e4m3 ? " (GPUs of compute capability 8.9 and newer do "
                                                  "it); use numerics.precision = bf16"
                                                : ""));
}

void LinearGemm::forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  multiply(gemm_of({GemmCall::Kind::forward, x, w, {}, {}, y}));
}

bool LinearGemm::forward_and_bias(const Tensor& x, const Tensor& w, const Tensor& bias,
                                  const Tensor& y) {
  TRIREME_EXPECT(bias.dtype() == y.dtype(), "a fused bias has the result's type");
  if (y.element_count() == 0) return true;
  return fuses_bias(bias) && try_multiply(gemm_of({GemmCall::Kind::forward, x, w, bias, {}, y}));
}

void LinearGemm::forward_quantised(const Quantised& x, const Quantised& w, const Tensor& y) {
  multiply(gemm_of(
      {GemmCall::Kind::quantised_forward, x.codes, w.codes, {}, {}, y, x.unscale, w.unscale}));
}

bool LinearGemm::forward_quantised_and_bias(const Quantised& x, const Quantised& w,
                                            const Tensor& bias, const Tensor& y) {
  if (y.element_count() == 0) return true;
  return fuses_bias(bias) && try_multiply(gemm_of({GemmCall::Kind::quantised_forward,
                                                   x.codes,
                                                   w.codes,
                                                   bias,
                                                   {},
                                                   y,
                                                   x.unscale,
                                                   w.unscale}));
}

void LinearGemm::backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx) {
  multiply(gemm_of({GemmCall::Kind::backward_input, dy, w, {}, {}, dx}));
}

void LinearGemm::backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  if (x.element_count() == 0) return;
  multiply(gemm_of({GemmCall::Kind::backward_weight, dy, x, {}, {}, dw}));
}

bool LinearGemm::gelu_forward(const GemmCall& call) {
  return fuses(call) && try_multiply(gemm_of(call));
}

bool LinearGemm::backward_gelu(const GemmCall& call) {
  return fuses(call) && try_multiply(gemm_of(call));
}

bool LinearGemm::backward_weight_and_bias(const GemmCall& call) {
  return fuses(call) && try_multiply(gemm_of(call));
}

}  // namespace trireme::device::cuda
