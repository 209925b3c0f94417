#include "device/cuda/gemm/cublaslt_gemm.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "device/cuda/gemm/plan.hpp"

#include <array>
#include <bit>
#include <cctype>
#include <cstdint>

namespace trireme::device::cuda {
namespace {

constexpr std::size_t workspace_bytes = product_workspace_bytes;
/// Of the library's ranking; what comes later has hardly ever won.
constexpr int most_ways = 8;

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

/// What the heuristics are told of an address that they do not follow.
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

std::string target_of(const Blas& blas, const std::string& card) {
  return base::format("{}, cuBLASLt {}, sums in fp32, workspace {}", card, blas.version(),
                      workspace_bytes);
}

/// "products-nvidia-h200-130002.json".
std::string file_name_of(const Blas& blas, const std::string& card) {
  std::string name;
  for (const char letter : card) {
    const auto code = static_cast<unsigned char>(letter);
    name += std::isalnum(code) != 0 ? static_cast<char>(std::tolower(code)) : '-';
  }
  return base::format("products-{}-{}.json", name, blas.version());
}

}  // namespace

Products::Products(const Blas& blas, StreamView stream, const std::string& card)
    : blas_(blas),
      stream_(stream),
      workspace_(allocate_device(workspace_bytes)),
      file_name_(file_name_of(blas, card)),
      choices_(target_of(blas, card)) {
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

void Products::warn_of(const MatrixProduct& product, cublasStatus_t status,
                       const char* call) const {
  base::log::local::warning("device", "{} of the product {}: {}; own kernels do the rest", call,
                            product.text(), blas_.status_text(status));
}

void Products::describe(const MatrixProduct& product, Plan& plan) const {
  const auto compute = product.in == DType::f32 ? CUBLAS_COMPUTE_32F_PEDANTIC : CUBLAS_COMPUTE_32F;
  check(blas_.init_operation(&plan.operation, sizeof(plan.operation), compute, CUDA_R_32F),
        "cublasLtMatmulDescInit");
  const auto set = [&](cublasLtMatmulDescAttributes_t attribute, const auto& value) {
    check(blas_.set_operation(&plan.operation, attribute, static_cast<const void*>(&value),
                              sizeof(value)),
          "cublasLtMatmulDescSetAttribute");
  };
  set(CUBLASLT_MATMUL_DESC_TRANSA, product.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_TRANSB, product.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(CUBLASLT_MATMUL_DESC_EPILOGUE, epilogue_of(product.epilogue));
  // The heuristics take alignments from addresses that they do not follow; none means any.
  if (has_bias(product.epilogue)) {
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, somewhere(bias_alignment));
  }
  if (product.stride_aux != 0) {
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD, product.stride_aux);
    set(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, somewhere(product.alignment_aux));
  }
  if (product.in == DType::e4m3) {
    set(CUBLASLT_MATMUL_DESC_FAST_ACCUM, std::int8_t{0});
    if (product.epilogue == Epilogue::bias) {
      set(CUBLASLT_MATMUL_DESC_BIAS_DATA_TYPE, type_of(product.out));
    }
    set(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, somewhere(sizeof(float)));
    set(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, somewhere(sizeof(float)));
  }
  const auto layout = [&](cublasLtMatrixLayoutOpaque_t& matrix, DType dtype, bool transposed,
                          std::int64_t rows, std::int64_t columns, std::int64_t stride) {
    if (transposed) std::swap(rows, columns);
    check(
        blas_.init_layout(&matrix, sizeof(matrix), type_of(dtype), static_cast<std::uint64_t>(rows),
                          static_cast<std::uint64_t>(columns), stride),
        "cublasLtMatrixLayoutInit");
  };
  layout(plan.a, product.in, product.transpose_a, product.m, product.k, product.stride_a);
  layout(plan.b, product.in, product.transpose_b, product.k, product.n, product.stride_b);
  layout(plan.d, product.out, false, product.m, product.n, product.stride_d);
}

std::vector<Algorithm> Products::ways(const MatrixProduct& product, Plan plan) const {
  cublasLtMatmulPreferenceOpaque_t preference{};
  check(blas_.init_preference(&preference, sizeof(preference)), "cublasLtMatmulPreferenceInit");
  const auto prefer = [&](cublasLtMatmulPreferenceAttributes_t attribute, const auto& value) {
    check(blas_.set_preference(&preference, attribute, &value, sizeof(value)),
          "cublasLtMatmulPreferenceSetAttribute");
  };
  prefer(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, std::uint64_t{workspace_bytes});
  if (product.out != DType::f32) {
    // Unless told, parts of a split sum may be rounded to the result's type before they meet.
    prefer(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
           std::uint32_t{CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE});
  }
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, product.alignment_a);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, product.alignment_b);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, product.alignment_d);
  prefer(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, product.alignment_d);
  std::array<cublasLtMatmulHeuristicResult_t, most_ways> results{};
  int found = 0;
  const auto status = blas_.heuristic(handle_, &plan.operation, &plan.a, &plan.b, &plan.d, &plan.d,
                                      &preference, most_ways, results.data(), &found);
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  if (status != CUBLAS_STATUS_SUCCESS && product.epilogue != Epilogue::none) {
    warn_of(product, status, "cublasLtMatmulAlgoGetHeuristic");
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

std::optional<Algorithm> Products::chosen(const MatrixProduct& product, Plan plan) const {
  const auto* const algorithm = choices_.find(product.text());
  if (algorithm == nullptr) return std::nullopt;
  const auto theirs = std::bit_cast<cublasLtMatmulAlgo_t>(*algorithm);
  cublasLtMatmulHeuristicResult_t result{};
  const auto status = blas_.check_algorithm(handle_, &plan.operation, &plan.a, &plan.b, &plan.d,
                                            &plan.d, &theirs, &result);
  const bool taken = status == CUBLAS_STATUS_SUCCESS;
  if (taken && result.workspaceSize <= workspace_bytes) return *algorithm;
  base::log::local::warning(
      "device", "the choice for the product {} is passed over: {} (it may be from a damaged file)",
      product.text(), taken ? "it needs more workspace" : blas_.status_text(status));
  return std::nullopt;
}

Products::Plan* Products::plan_for(const MatrixProduct& product) {
  if (const auto known = plans_.find(product); known != plans_.end()) {
    return known->second ? &*known->second : nullptr;
  }
  const auto* const known = choices_.find(product.text());
  if (known != nullptr && *known == declined && can_go_without(product.epilogue)) {
    plans_.emplace(product, std::nullopt);
    return nullptr;
  }
  Plan plan;
  describe(product, plan);
  if (const auto algorithm = chosen(product, plan)) {
    plan.algorithm = *algorithm;
  } else {
    const auto all = ways(product, plan);
    if (all.empty()) {
      plans_.emplace(product, std::nullopt);
      return nullptr;
    }
    plan.algorithm = all.front();
  }
  return &*plans_.emplace(product, plan).first->second;
}

cublasStatus_t Products::issue(Plan plan, const Algorithm& algorithm, const ProductWork& work) {
  const auto point = [&](cublasLtMatmulDescAttributes_t attribute, const void* address) {
    check(blas_.set_operation(&plan.operation, attribute, static_cast<const void*>(&address),
                              sizeof(address)),
          "cublasLtMatmulDescSetAttribute");
  };
  const auto& operands = work.operands;
  if (operands.bias != nullptr) point(CUBLASLT_MATMUL_DESC_BIAS_POINTER, operands.bias);
  if (operands.scale_a != nullptr) point(CUBLASLT_MATMUL_DESC_A_SCALE_POINTER, operands.scale_a);
  if (operands.scale_b != nullptr) point(CUBLASLT_MATMUL_DESC_B_SCALE_POINTER, operands.scale_b);
  if (operands.aux != nullptr) point(CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER, operands.aux);
  const float alpha = 1.0F;
  const float beta = work.product.accumulate ? 1.0F : 0.0F;
  const auto theirs = std::bit_cast<cublasLtMatmulAlgo_t>(algorithm);
  return blas_.matmul(handle_, &plan.operation, &alpha, operands.a, &plan.a, operands.b, &plan.b,
                      &beta, operands.d, &plan.d, operands.d, &plan.d, &theirs, workspace_.get(),
                      workspace_bytes, stream_.raw());
}

bool Products::try_multiply(const ProductWork& work) {
  const auto* const plan = plan_for(work.product);
  if (plan == nullptr) return false;
  const auto status = issue(*plan, plan->algorithm, work);
  if (status == CUBLAS_STATUS_SUCCESS) return true;
  if (work.product.epilogue == Epilogue::none) check(status, "cublasLtMatmul");
  warn_of(work.product, status, "cublasLtMatmul");
  plans_[work.product] = std::nullopt;
  return false;
}

void Products::multiply(const ProductWork& work) {
  const auto& product = work.product;
  if (product.m == 0 || product.n == 0) return;
  if (try_multiply(work)) return;
  throw base::Error(
      base::ExitCode::topology,
      base::format("cuBLASLt has no way to multiply {} x {} x {} in {}{}", product.m, product.k,
                   product.n, device::name(product.in),
                   product.in == DType::e4m3 ? " (cards of compute capability 8.9 and newer do "
                                               "it); use numerics.precision = bf16"
                                             : ""));
}

void Products::forward(const Tensor& x, const Tensor& w, const Tensor& y) {
  multiply(work_of({ProductCall::Kind::forward, x, w, {}, {}, y}));
}

bool Products::forward_and_bias(const Tensor& x, const Tensor& w, const Tensor& bias,
                                const Tensor& y) {
  TRIREME_EXPECT(bias.dtype() == y.dtype(), "a fused bias has the result's type");
  if (y.element_count() == 0) return true;
  return fuses_bias(bias) && try_multiply(work_of({ProductCall::Kind::forward, x, w, bias, {}, y}));
}

void Products::forward_quantised(const Quantised& x, const Quantised& w, const Tensor& y) {
  multiply(work_of(
      {ProductCall::Kind::quantised_forward, x.codes, w.codes, {}, {}, y, x.unscale, w.unscale}));
}

bool Products::forward_quantised_and_bias(const Quantised& x, const Quantised& w,
                                          const Tensor& bias, const Tensor& y) {
  if (y.element_count() == 0) return true;
  return fuses_bias(bias) && try_multiply(work_of({ProductCall::Kind::quantised_forward,
                                                   x.codes,
                                                   w.codes,
                                                   bias,
                                                   {},
                                                   y,
                                                   x.unscale,
                                                   w.unscale}));
}

void Products::backward_input(const Tensor& dy, const Tensor& w, const Tensor& dx,
                              bool accumulate) {
  const auto kind =
      accumulate ? ProductCall::Kind::accumulate_input : ProductCall::Kind::backward_input;
  multiply(work_of({kind, dy, w, {}, {}, dx}));
}

void Products::backward_weight(const Tensor& dy, const Tensor& x, const Tensor& dw) {
  if (x.element_count() == 0) return;
  multiply(work_of({ProductCall::Kind::backward_weight, dy, x, {}, {}, dw}));
}

bool Products::gelu_forward(const ProductCall& call) {
  return fuses(call) && try_multiply(work_of(call));
}

bool Products::backward_gelu(const ProductCall& call) {
  return fuses(call) && try_multiply(work_of(call));
}

bool Products::backward_weight_and_bias(const ProductCall& call) {
  return fuses(call) && try_multiply(work_of(call));
}

}  // namespace trireme::device::cuda
