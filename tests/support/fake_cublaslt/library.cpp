// SPDX-License-Identifier: Apache-2.0
// The functions of cuBLASLt that products call, on the CPU. Who opens this library instead of the
// real one must have a CUDA runtime of its own: cudaLaunchHostFunc at least.
#include "support/fake_cublaslt/launch.hpp"
#include "support/fake_cublaslt/runtime.hpp"

#include <algorithm>
#include <bit>
#include <initializer_list>

namespace trireme::testing::cublaslt {
namespace {

constexpr auto invalid = CUBLAS_STATUS_INVALID_VALUE;
constexpr auto fine = CUBLAS_STATUS_SUCCESS;
constexpr std::uint64_t handle_mark = 0x68616E646C652E2E;

/// Null: it is none.
Handle* of(cublasLtHandle_t raw) {
  auto* const handle = reinterpret_cast<Handle*>(raw);
  return handle != nullptr && handle->mark == handle_mark ? handle : nullptr;
}

cublasStatus_t judge(const Preference& preference) {
  for (const auto alignment : {preference.alignment_a, preference.alignment_b,
                               preference.alignment_c, preference.alignment_d}) {
    if (!std::has_single_bit(alignment) || alignment > 256) {
      return refuse(invalid, "an alignment is no power of two up to 256");
    }
  }
  return preference.beyond == 0
             ? fine
             : refuse(CUBLAS_STATUS_NOT_SUPPORTED, "a preference that the stand-in ignores");
}

cublasStatus_t misuse(cublasStatus_t status) {
  if (status != fine) ++fake_cublaslt_controls()->misuses;
  return status;
}

cublasStatus_t multiply(Handle& handle, std::unique_ptr<Launch> launch, cudaStream_t stream) {
  if (const auto status = judge(*launch); status != fine) return misuse(status);
  const auto epilogue = launch->problem.operation.epilogue;
  const auto failing = fake_cublaslt_controls()->failing_epilogue;
  if (launch->record.way == Way::breaks || (failing != 0 && failing == epilogue)) {
    return refuse(CUBLAS_STATUS_EXECUTION_FAILED, "this algorithm fails");
  }
  return enqueue(handle, std::move(launch), stream);
}

}  // namespace
}  // namespace trireme::testing::cublaslt

// NOLINTBEGIN(readability-identifier-naming,readability-function-size): names and parameters are
// cuBLASLt's.
extern "C" {

using namespace trireme::testing::cublaslt;

std::size_t cublasLtGetVersion() {
  return CUBLAS_VERSION;
}

const char* cublasLtGetStatusString(cublasStatus_t status) {
  if (status == CUBLAS_STATUS_SUCCESS) return "success";
  if (status == CUBLAS_STATUS_NOT_INITIALIZED) return "the library was not initialized";
  if (status == CUBLAS_STATUS_INVALID_VALUE) return "an unsupported value or parameter";
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return "the functionality is not supported";
  return status == CUBLAS_STATUS_EXECUTION_FAILED ? "the function failed to launch" : "a failure";
}

cublasStatus_t cublasLtCreate(cublasLtHandle_t* handle) {
  if (handle == nullptr) return refuse(invalid, "there is no place for the handle");
  if (runtime().launch_host_function == nullptr) {
    return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "the program has no cudaLaunchHostFunc");
  }
  auto made = std::make_unique<Handle>();
  made->mark = handle_mark;
  made->device = current_device();
  made->capability = capability_of(made->device);
  *handle = reinterpret_cast<cublasLtHandle_t>(made.release());
  return fine;
}

cublasStatus_t cublasLtDestroy(cublasLtHandle_t raw) {
  auto* const handle = of(raw);
  if (handle == nullptr) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "there is no handle");
  if (runtime().synchronize != nullptr) runtime().synchronize();
  handle->mark = 0;
  delete handle;
  return fine;
}

cublasStatus_t cublasLtMatmulAlgoGetHeuristic(cublasLtHandle_t raw, cublasLtMatmulDesc_t operation,
                                              cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                              cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                              cublasLtMatmulPreference_t preferences, int most,
                                              cublasLtMatmulHeuristicResult_t results[],
                                              int* found) {
  const auto* const handle = of(raw);
  if (handle == nullptr) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "there is no handle");
  if (most < 1 || results == nullptr || found == nullptr) return refuse(invalid, "no place");
  *found = 0;
  Problem problem;
  const auto described = read_problem(operation, {a, b, c, d}, handle->capability, problem);
  if (described != fine) return described;
  Preference preference;
  if (!read(preferences, preference)) return refuse(invalid, "preferences are not initialised");
  if (const auto status = judge(preference); status != fine) return status;
  const auto refused = fake_cublaslt_controls()->refused_epilogue;
  if (refused != 0 && refused == problem.operation.epilogue) {
    return refuse(CUBLAS_STATUS_NOT_SUPPORTED, "the test wants this epilogue refused");
  }
  for (const auto& record : ways_for(problem, preference)) {
    if (*found < most) results[(*found)++] = result_of(record, problem.matrices());
  }
  return fine;
}

cublasStatus_t cublasLtMatmulAlgoCheck(cublasLtHandle_t raw, cublasLtMatmulDesc_t operation,
                                       cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
                                       cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t d,
                                       const cublasLtMatmulAlgo_t* algorithm,
                                       cublasLtMatmulHeuristicResult_t* result) {
  const auto* const handle = of(raw);
  if (handle == nullptr) return refuse(CUBLAS_STATUS_NOT_INITIALIZED, "there is no handle");
  Problem problem;
  const auto described = read_problem(operation, {a, b, c, d}, handle->capability, problem);
  if (described != fine) return described;
  Record record;
  if (!read(algorithm, record)) return refuse(invalid, "that is no algorithm");
  if (const auto status = judge(record, problem); status != fine) return status;
  if (result != nullptr) *result = result_of(record, problem.matrices());
  return fine;
}

cublasStatus_t cublasLtMatmul(cublasLtHandle_t raw, cublasLtMatmulDesc_t operation,
                              const void* alpha, const void* a, cublasLtMatrixLayout_t layout_a,
                              const void* b, cublasLtMatrixLayout_t layout_b, const void* beta,
                              const void* c, cublasLtMatrixLayout_t layout_c, void* d,
                              cublasLtMatrixLayout_t layout_d,
                              const cublasLtMatmulAlgo_t* algorithm, void* workspace,
                              std::size_t workspace_bytes, cudaStream_t stream) {
  auto* const handle = of(raw);
  if (handle == nullptr) {
    return misuse(refuse(CUBLAS_STATUS_NOT_INITIALIZED, "there is no handle"));
  }
  if (current_device() != handle->device) {
    return misuse(refuse(invalid, "the thread's GPU is not the handle's"));
  }
  if (alpha == nullptr || beta == nullptr) return misuse(refuse(invalid, "no alpha or no beta"));
  auto launch = std::make_unique<Launch>();
  const auto described = read_problem(operation, {layout_a, layout_b, layout_c, layout_d},
                                      handle->capability, launch->problem);
  if (described != fine) return misuse(described);
  if (!read(algorithm, launch->record)) return misuse(refuse(invalid, "that is no algorithm"));
  const auto& described_operation = launch->problem.operation;
  launch->addresses = {a,
                       b,
                       c,
                       d,
                       described_operation.bias,
                       described_operation.aux,
                       described_operation.scale_a,
                       described_operation.scale_b};
  launch->factors = {*static_cast<const float*>(alpha), *static_cast<const float*>(beta)};
  launch->workspace = workspace;
  launch->workspace_bytes = workspace_bytes;
  return multiply(*handle, std::move(launch), stream);
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,readability-function-size)
