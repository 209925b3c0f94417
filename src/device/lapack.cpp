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

DecompositionWorkspace::DecompositionWorkspace(Arena& arena, std::int64_t n, Numbers numbers)
    : reals(arena.allocate(DType::f32, {numbers == Numbers::fp64 ? 2 * (1 + 7 * n + 3 * n * n)
                                                                 : 1 + 6 * n + 2 * n * n})),
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

/// In the workspace, where it is one for doubles; a matrix that does not converge in fp32 comes
/// hardly ever, and gets memory of its own.
int solve_in_double(const SymmetricEigenvectors& operation) {
  const auto& [symmetric, vectors, values, workspace] = operation;
  const int n = side_of(vectors);
  const auto side = static_cast<std::size_t>(n);
  const auto elements = side * side;
  const int work_length = static_cast<int>(1 + 6 * side + 2 * elements);
  const auto needed = static_cast<std::size_t>(work_length) + side + elements;
  std::vector<double> own;
  auto* work = static_cast<double*>(workspace.reals.raw());
  if (workspace.reals.byte_count() < needed * sizeof(double)) {
    own.resize(needed);
    work = own.data();
  }
  auto* const its_values = work + work_length;
  auto* const a = its_values + side;
  const auto& [high, low] = symmetric;
  widen({high.f32(), elements}, {low ? low.f32() : nullptr, low ? elements : 0}, a);
  const int integers = length_of(workspace.integers);
  int info = 0;
  dsyevd_("V", "L", &n, a, &n, its_values, work, &work_length, workspace.integers.i32(), &integers,
          &info, 1, 1);
  const auto narrow = [](double value) { return static_cast<float>(value); };
  std::transform(a, a + elements, vectors.f32(), narrow);
  std::transform(its_values, its_values + side, values.f32(), narrow);
  return info;
}

}  // namespace

void run(const SymmetricEigenvectors& operation) {
  const auto& [symmetric, vectors, values, workspace] = operation;
  use_one_thread();
  const int n = side_of(vectors);
  if (symmetric.low) {
    expect_decomposed("the eigendecomposition", solve_in_double(operation), n);
    return;
  }
  const int reals = length_of(workspace.reals);
  const int integers = length_of(workspace.integers);
  int info = 0;
  // Fortran's columns are rows here: a symmetric matrix is the same, and each vector is a row.
  std::copy_n(symmetric.high.f32(), symmetric.high.element_count(), vectors.f32());
  ssyevd_("V", "L", &n, vectors.f32(), &n, values.f32(), workspace.reals.f32(), &reals,
          workspace.integers.i32(), &integers, &info, 1, 1);
  if (info != 0) info = solve_in_double(operation);
  expect_decomposed("the eigendecomposition", info, n);
}

void run(const OrthonormaliseRows& operation) {
  const auto& [x, reflections, workspace] = operation;
  use_one_thread();
  const int n = side_of(x);
  const int reals = length_of(workspace.reals);
  int info = 0;
  sgeqrf_(&n, &n, x.f32(), &n, reflections.f32(), workspace.reals.f32(), &reals, &info);
  expect_decomposed("the QR decomposition", info, n);
  sorgqr_(&n, &n, &n, x.f32(), &n, reflections.f32(), workspace.reals.f32(), &reals, &info);
  expect_decomposed("the basis of a QR decomposition", info, n);
}

}  // namespace trireme::device::lapack
