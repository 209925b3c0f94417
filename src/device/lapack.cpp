// SPDX-License-Identifier: Apache-2.0
// The only file of the product that calls LAPACK.
#include "device/lapack.hpp"

#include "trireme/device/arena.hpp"

#include "device/decompositions.hpp"
#include "device/lapack_routines.hpp"

#include <dlfcn.h>

#include <algorithm>
#include <cstddef>
#include <vector>

namespace trireme::device {

DecompositionWorkspace::DecompositionWorkspace(Arena& arena, std::int64_t n)
    : reals(arena.allocate(DType::f32, {1 + 6 * n + 2 * n * n})),
      integers(arena.allocate(DType::i32, {3 + 5 * n})) {}

}  // namespace trireme::device

namespace trireme::device::lapack {
namespace {

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

int solve_in_double(const SymmetricEigenvectors& operation) {
  const auto& [symmetric, vectors, values, workspace] = operation;
  const int n = side_of(operation);
  std::vector<double> a(symmetric.f32(), symmetric.f32() + symmetric.element_count());
  std::vector<double> its_values(static_cast<std::size_t>(n));
  std::vector<double> work(static_cast<std::size_t>(1 + 6 * n) + 2 * a.size());
  const int work_length = static_cast<int>(work.size());
  const int integers = length_of(workspace.integers);
  int info = 0;
  dsyevd_("V", "L", &n, a.data(), &n, its_values.data(), work.data(), &work_length,
          workspace.integers.i32(), &integers, &info, 1, 1);
  const auto narrow = [](double value) { return static_cast<float>(value); };
  std::transform(a.begin(), a.end(), vectors.f32(), narrow);
  std::transform(its_values.begin(), its_values.end(), values.f32(), narrow);
  return info;
}

}  // namespace

void run(const SymmetricEigenvectors& operation) {
  const auto& [symmetric, vectors, values, workspace] = operation;
  use_one_thread();
  const int n = side_of(operation);
  const int reals = length_of(workspace.reals);
  const int integers = length_of(workspace.integers);
  int info = 0;
  // Fortran's columns are rows here: a symmetric matrix is the same, and each vector is a row.
  std::copy_n(symmetric.f32(), symmetric.element_count(), vectors.f32());
  ssyevd_("V", "L", &n, vectors.f32(), &n, values.f32(), workspace.reals.f32(), &reals,
          workspace.integers.i32(), &integers, &info, 1, 1);
  if (info != 0) info = solve_in_double(operation);
  expect_decomposed("the eigendecomposition", info, n);
}

void run(const OrthonormaliseRows& operation) {
  const auto& [x, reflections, workspace] = operation;
  use_one_thread();
  const int n = side_of(operation);
  const int reals = length_of(workspace.reals);
  int info = 0;
  sgeqrf_(&n, &n, x.f32(), &n, reflections.f32(), workspace.reals.f32(), &reals, &info);
  expect_decomposed("the QR decomposition", info, n);
  sorgqr_(&n, &n, &n, x.f32(), &n, reflections.f32(), workspace.reals.f32(), &reals, &info);
  expect_decomposed("the basis of a QR decomposition", info, n);
}

}  // namespace trireme::device::lapack
