// SPDX-License-Identifier: Apache-2.0
// The installed cuSOLVER, as far as it answers without a GPU.
#include "device/cuda/decompositions/cusolver.hpp"

#include <catch2/catch.hpp>

#include <iostream>

using namespace trireme::device::cuda;

TEST_CASE("cuSOLVER has every function that decompositions call, and takes no handle for one") {
  const auto library = load_cusolver();
  if (!library.ok()) {
    std::cout << "TRIREME_SKIP: " << library.failure().text << "\n";
    return;
  }
  const auto& solver = **library;
  int version = 0;
  CHECK(solver.version(&version) == CUSOLVER_STATUS_SUCCESS);
  CHECK(version / 1000 == CUSOLVER_VER_MAJOR);
  int length = 0;
  constexpr auto none = CUSOLVER_STATUS_NOT_INITIALIZED;
  CHECK(solver.eigenvectors_length(nullptr, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER, 2,
                                   nullptr, 2, nullptr, &length) == none);
  CHECK(solver.double_eigenvectors_length(nullptr, CUSOLVER_EIG_MODE_VECTOR, CUBLAS_FILL_MODE_LOWER,
                                          2, nullptr, 2, nullptr, &length) == none);
  CHECK(solver.qr_length(nullptr, 2, 2, nullptr, 2, &length) == none);
  CHECK(solver.basis_length(nullptr, 2, 2, 2, nullptr, 2, nullptr, &length) == none);
}
