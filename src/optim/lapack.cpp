// SPDX-License-Identifier: Apache-2.0
// The only file that calls LAPACK. Debian's liblapack-dev has no header for C++ (LAPACKE is a layer
// of copies above), so the Fortran routines are declared here as gfortran calls them: each argument
// by address, and behind them the lengths of texts.
#include "lapack.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming): gfortran's names
extern "C" {
void ssyevd_(const char* jobz, const char* uplo, const int* n, float* a, const int* lda, float* w,
             float* work, const int* lwork, int* iwork, const int* liwork, int* info,
             std::size_t jobz_length, std::size_t uplo_length);
void dsyevd_(const char* jobz, const char* uplo, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info,
             std::size_t jobz_length, std::size_t uplo_length);
void sgeqrf_(const int* m, const int* n, float* a, const int* lda, float* tau, float* work,
             const int* lwork, int* info);
void sorgqr_(const int* m, const int* n, const int* k, float* a, const int* lda, const float* tau,
             float* work, const int* lwork, int* info);
}
// NOLINTEND(readability-identifier-naming)

namespace trireme::optim::lapack {
namespace {

using device::DType;
using device::Tensor;

/// OpenBLAS, which an administrator may have put in LAPACK's place, starts threads of its own and
/// sums in an order that depends on them. Debian's own has no threads.
void use_one_thread() {
  static const bool done = [] {
    using SetThreads = void (*)(int);
    if (auto* const found = dlsym(RTLD_DEFAULT, "openblas_set_num_threads"); found != nullptr) {
      reinterpret_cast<SetThreads>(found)(1);
    }
    return true;
  }();
  static_cast<void>(done);
}

int side_of(const Tensor& square) {
  TRIREME_EXPECT(square.rank() == 2 && square.dim(0) == square.dim(1) && square.contiguous() &&
                     square.dtype() == DType::f32,
                 "a square matrix in one run: " + square.text());
  return static_cast<int>(square.dim(0));
}

int length_of(const Tensor& memory) {
  return static_cast<int>(memory.element_count());
}

int solve_in_double(const Tensor& symmetric, const Tensor& vectors, const Workspace& workspace) {
  const int n = side_of(symmetric);
  std::vector<double> a(symmetric.f32(), symmetric.f32() + symmetric.element_count());
  std::vector<double> values(static_cast<std::size_t>(n));
  std::vector<double> work(static_cast<std::size_t>(1 + 6 * n) + 2 * a.size());
  const int work_length = static_cast<int>(work.size());
  const int integers = length_of(workspace.integers);
  int info = 0;
  dsyevd_("V", "L", &n, a.data(), &n, values.data(), work.data(), &work_length,
          workspace.integers.i32(), &integers, &info, 1, 1);
  const auto narrow = [](double value) { return static_cast<float>(value); };
  std::transform(a.begin(), a.end(), vectors.f32(), narrow);
  std::transform(values.begin(), values.end(), workspace.values.f32(), narrow);
  return info;
}

void expect_done(const char* routine, int info, int n) {
  if (info == 0) return;
  throw base::Error(base::ExitCode::internal,
                    base::format("{} of a matrix [{}, {}] failed (info {})", routine, n, n, info));
}

}  // namespace

Workspace::Workspace(device::Arena& arena, std::int64_t n)
    : values(arena.allocate(DType::f32, {n})),
      reals(arena.allocate(DType::f32, {1 + 6 * n + 2 * n * n})),
      integers(arena.allocate(DType::i32, {3 + 5 * n})) {}

void eigenvectors(const Tensor& symmetric, const Tensor& vectors, const Workspace& workspace) {
  use_one_thread();
  const int n = side_of(symmetric);
  const int reals = length_of(workspace.reals);
  const int integers = length_of(workspace.integers);
  int info = 0;
  // Fortran's columns are rows here: a symmetric matrix is the same, and each vector is a row.
  std::copy_n(symmetric.f32(), symmetric.element_count(), vectors.f32());
  ssyevd_("V", "L", &n, vectors.f32(), &n, workspace.values.f32(), workspace.reals.f32(), &reals,
          workspace.integers.i32(), &integers, &info, 1, 1);
  if (info != 0) info = solve_in_double(symmetric, vectors, workspace);
  expect_done("the eigendecomposition", info, n);
}

void orthonormalise_rows(const Tensor& x, const Workspace& workspace) {
  use_one_thread();
  const int n = side_of(x);
  const int reals = length_of(workspace.reals);
  int info = 0;
  sgeqrf_(&n, &n, x.f32(), &n, workspace.values.f32(), workspace.reals.f32(), &reals, &info);
  expect_done("the QR decomposition", info, n);
  sorgqr_(&n, &n, &n, x.f32(), &n, workspace.values.f32(), workspace.reals.f32(), &reals, &info);
  expect_done("the basis of a QR decomposition", info, n);
}

}  // namespace trireme::optim::lapack
