// SPDX-License-Identifier: Apache-2.0
// The functions of cuSOLVER that decompositions call, by LAPACK on the CPU. Who opens this library
// instead of the real one must have a CUDA runtime of its own: cudaLaunchHostFunc at least.
#include "device/lapack_routines.hpp"
#include "support/fake_cublaslt/runtime.hpp"
#include "support/fake_cusolver/judgement.hpp"

#include <cusolverDn.h>

#include <algorithm>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <string>
#include <vector>

extern "C" trireme::testing::CusolverControls* fake_cusolver_controls() {
  static trireme::testing::CusolverControls controls;
  return &controls;
}

namespace trireme::testing::cusolver {
namespace {

using cublaslt::current_device;
using cublaslt::runtime;

template <typename Real>
std::size_t bytes_of(std::int64_t count) {
  return static_cast<std::size_t>(count) * sizeof(Real);
}

/// Columns of a matrix, to the last element.
template <typename Real>
Extent matrix(const Real* a, int n, int lda) {
  return {"A", a, bytes_of<Real>(std::int64_t{lda} * (n - 1) + n)};
}

/// Numbers in a workspace, or in results before a routine, are nobody's.
template <typename Real>
void poison(Real* memory, int count) {
  std::fill_n(memory, count, std::numeric_limits<Real>::quiet_NaN());
}

using Body = std::function<void()>;

/// Puts it at the end of what the handle's stream does.
cusolverStatus_t enqueue(const Handle& handle, Body body) {
  auto state = cudaStreamCaptureStatusNone;
  if (runtime().is_capturing(handle.stream, &state) != cudaSuccess ||
      state != cudaStreamCaptureStatusNone) {
    return refuse(CUSOLVER_STATUS_EXECUTION_FAILED, "a routine that a capture cannot hold");
  }
  auto owned = std::make_unique<Body>(std::move(body));
  const auto run = [](void* data) {
    const std::unique_ptr<Body> mine(static_cast<Body*>(data));
    (*mine)();
  };
  if (runtime().launch_host_function(handle.stream, run, owned.get()) != cudaSuccess) {
    return refuse(CUSOLVER_STATUS_EXECUTION_FAILED, "the stream takes no work");
  }
  static_cast<void>(owned.release());
  return fine;
}

bool takes(std::uint64_t& failures) {
  if (failures == 0) return false;
  --failures;
  return true;
}

/// Memory that LAPACK itself works in.
template <typename Real>
struct Lapack {
  explicit Lapack(int n)
      : reals(static_cast<std::size_t>(1 + 6 * n + 2 * n * n)),
        integers(static_cast<std::size_t>(3 + 5 * n)),
        length(static_cast<int>(reals.size())),
        integer_length(static_cast<int>(integers.size())) {}
  std::vector<Real> reals;
  std::vector<int> integers;
  int length;
  int integer_length;
};

void solve(int n, float* a, int lda, float* w, int* info) {
  Lapack<float> own(n);
  ssyevd_("V", "L", &n, a, &lda, w, own.reals.data(), &own.length, own.integers.data(),
          &own.integer_length, info, 1, 1);
}
void solve(int n, double* a, int lda, double* w, int* info) {
  Lapack<double> own(n);
  dsyevd_("V", "L", &n, a, &lda, w, own.reals.data(), &own.length, own.integers.data(),
          &own.integer_length, info, 1, 1);
}

/// More than LAPACK asks for where a side is odd, as a library may.
int eigenvectors_length(int n) {
  return (n % 2 == 0 ? 1 : 17) + 6 * n + (n % 2 == 0 ? 2 : 3) * n * n;
}
int qr_length(int n) {
  return 32 * n + 5;
}
int basis_length(int n) {
  return 48 * n + 7;
}

cusolverStatus_t judge_form(cusolverEigMode_t mode, cublasFillMode_t triangle) {
  if (mode == CUSOLVER_EIG_MODE_VECTOR && triangle == CUBLAS_FILL_MODE_LOWER) return fine;
  return refuse(CUSOLVER_STATUS_NOT_SUPPORTED, "the stand-in finds vectors, of lower triangles");
}

template <typename Real>
struct Eigen {
  int n;
  Real* a;
  int lda;
  Real* w;
  Real* work;
  int lwork;
  int* info;
};

template <typename Real>
cusolverStatus_t decompose(cusolverDnHandle_t raw, const Eigen<Real>& call, std::uint64_t& count,
                           std::uint64_t& failures) {
  const auto& [n, a, lda, w, work, lwork, info] = call;
  if (const auto status = judge(raw, {n, lda, lwork, eigenvectors_length(n)}); status != fine) {
    return status;
  }
  const auto status = judge({matrix(a, n, lda),
                             {"W", w, bytes_of<Real>(n)},
                             {"the workspace", work, bytes_of<Real>(lwork)},
                             {"devInfo", info, sizeof(int)}});
  if (status != fine) return status;
  ++count;
  return enqueue(*of(raw), [call, fails = takes(failures)] {
    poison(call.work, call.lwork);
    poison(call.w, call.n);
    if (fails) {
      poison(call.a, call.n);
      *call.info = 1;
      return;
    }
    solve(call.n, call.a, call.lda, call.w, call.info);
  });
}

}  // namespace
}  // namespace trireme::testing::cusolver

// NOLINTBEGIN(readability-identifier-naming,readability-function-size): names and parameters are
// cuSOLVER's.
extern "C" {

using namespace trireme::testing::cusolver;

cusolverStatus_t cusolverGetVersion(int* version) {
  *version = CUSOLVER_VERSION;
  return fine;
}

cusolverStatus_t cusolverDnCreate(cusolverDnHandle_t* handle) {
  if (handle == nullptr) return refuse(invalid, "there is no place for the handle");
  if (runtime().launch_host_function == nullptr || runtime().is_capturing == nullptr) {
    return refuse(CUSOLVER_STATUS_NOT_INITIALIZED, "the program has no CUDA runtime");
  }
  auto made = std::make_unique<Handle>();
  made->mark = handle_mark;
  made->device = current_device();
  *handle = reinterpret_cast<cusolverDnHandle_t>(made.release());
  return fine;
}

cusolverStatus_t cusolverDnDestroy(cusolverDnHandle_t raw) {
  auto* const handle = of(raw);
  if (handle == nullptr) return refuse(CUSOLVER_STATUS_NOT_INITIALIZED, "there is no handle");
  if (runtime().synchronize != nullptr) runtime().synchronize();
  handle->mark = 0;
  delete handle;
  return fine;
}

cusolverStatus_t cusolverDnSetStream(cusolverDnHandle_t raw, cudaStream_t stream) {
  auto* const handle = of(raw);
  if (handle == nullptr) return refuse(CUSOLVER_STATUS_NOT_INITIALIZED, "there is no handle");
  handle->stream = stream;
  return fine;
}

cusolverStatus_t cusolverDnSsyevd_bufferSize(cusolverDnHandle_t raw, cusolverEigMode_t mode,
                                             cublasFillMode_t triangle, int n, const float* /*a*/,
                                             int lda, const float* /*w*/, int* length) {
  if (const auto status = judge_form(mode, triangle); status != fine) return status;
  if (length != nullptr) *length = eigenvectors_length(n);
  return judge(raw, {n, lda, 0, 0});
}

cusolverStatus_t cusolverDnSsyevd(cusolverDnHandle_t raw, cusolverEigMode_t mode,
                                  cublasFillMode_t triangle, int n, float* a, int lda, float* w,
                                  float* work, int lwork, int* info) {
  if (const auto status = judge_form(mode, triangle); status != fine) return status;
  auto& controls = *fake_cusolver_controls();
  return decompose<float>(raw, {n, a, lda, w, work, lwork, info}, controls.in_float,
                          controls.failing_in_float);
}

cusolverStatus_t cusolverDnDsyevd_bufferSize(cusolverDnHandle_t raw, cusolverEigMode_t mode,
                                             cublasFillMode_t triangle, int n, const double* /*a*/,
                                             int lda, const double* /*w*/, int* length) {
  if (const auto status = judge_form(mode, triangle); status != fine) return status;
  if (length != nullptr) *length = eigenvectors_length(n);
  return judge(raw, {n, lda, 0, 0});
}

cusolverStatus_t cusolverDnDsyevd(cusolverDnHandle_t raw, cusolverEigMode_t mode,
                                  cublasFillMode_t triangle, int n, double* a, int lda, double* w,
                                  double* work, int lwork, int* info) {
  if (const auto status = judge_form(mode, triangle); status != fine) return status;
  auto& controls = *fake_cusolver_controls();
  return decompose<double>(raw, {n, a, lda, w, work, lwork, info}, controls.in_double,
                           controls.failing_in_double);
}

cusolverStatus_t cusolverDnSgeqrf_bufferSize(cusolverDnHandle_t raw, int m, int n, float* /*a*/,
                                             int lda, int* length) {
  if (m != n) return refuse(CUSOLVER_STATUS_NOT_SUPPORTED, "the stand-in takes squares");
  if (length != nullptr) *length = qr_length(n);
  return judge(raw, {n, lda, 0, 0});
}

cusolverStatus_t cusolverDnSgeqrf(cusolverDnHandle_t raw, int m, int n, float* a, int lda,
                                  float* tau, float* work, int lwork, int* info) {
  if (m != n) return refuse(CUSOLVER_STATUS_NOT_SUPPORTED, "the stand-in takes squares");
  if (const auto status = judge(raw, {n, lda, lwork, qr_length(n)}); status != fine) return status;
  const auto status = judge({matrix(a, n, lda),
                             {"TAU", tau, bytes_of<float>(n)},
                             {"the workspace", work, bytes_of<float>(lwork)},
                             {"devInfo", info, sizeof(int)}});
  if (status != fine) return status;
  ++fake_cusolver_controls()->qr;
  return enqueue(*of(raw), [=] {
    poison(work, lwork);
    Lapack<float> own(n);
    sgeqrf_(&n, &n, a, &lda, tau, own.reals.data(), &own.length, info);
  });
}

cusolverStatus_t cusolverDnSorgqr_bufferSize(cusolverDnHandle_t raw, int m, int n, int k,
                                             const float* /*a*/, int lda, const float* /*tau*/,
                                             int* length) {
  if (m != n || k != n) return refuse(CUSOLVER_STATUS_NOT_SUPPORTED, "the stand-in takes squares");
  if (length != nullptr) *length = basis_length(n);
  return judge(raw, {n, lda, 0, 0});
}

cusolverStatus_t cusolverDnSorgqr(cusolverDnHandle_t raw, int m, int n, int k, float* a, int lda,
                                  const float* tau, float* work, int lwork, int* info) {
  if (m != n || k != n) return refuse(CUSOLVER_STATUS_NOT_SUPPORTED, "the stand-in takes squares");
  if (const auto status = judge(raw, {n, lda, lwork, basis_length(n)}); status != fine) {
    return status;
  }
  const auto status = judge({matrix(a, n, lda),
                             {"tau", tau, bytes_of<float>(n)},
                             {"the workspace", work, bytes_of<float>(lwork)},
                             {"devInfo", info, sizeof(int)}});
  if (status != fine) return status;
  ++fake_cusolver_controls()->bases;
  return enqueue(*of(raw), [=] {
    poison(work, lwork);
    Lapack<float> own(n);
    sorgqr_(&n, &n, &n, a, &lda, tau, own.reals.data(), &own.length, info);
  });
}

}  // extern "C"
// NOLINTEND(readability-identifier-naming,readability-function-size)
