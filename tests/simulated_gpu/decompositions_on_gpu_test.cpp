// SPDX-License-Identifier: Apache-2.0
// Decompositions by the cuda backend's own code, over the stand-in of cuSOLVER.
#include "trireme/base/error.hpp"

#include "simulated_gpu/watched_gpu.hpp"
#include "support/fake_cusolver/controls.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>
#include <dlfcn.h>

using namespace trireme::device;
using namespace trireme::device::test;
using trireme::testing::CusolverControls;

namespace {

CusolverControls& solver() {
  static CusolverControls* const found = [] {
    void* const library = ::dlopen(TRIREME_FAKE_CUSOLVER, RTLD_NOW | RTLD_LOCAL);
    REQUIRE(library != nullptr);
    const auto controls = reinterpret_cast<trireme::testing::CusolverControlsFunction*>(
        ::dlsym(library, "fake_cusolver_controls"));
    REQUIRE(controls != nullptr);
    return controls();
  }();
  return *found;
}

/// A symmetric matrix of known kind, and room for what is found of it.
struct Matrix {
  explicit Matrix(std::int64_t side)
      : n(side),
        x(DType::f32, {n, n}),
        vectors(DType::f32, {n, n}),
        values(DType::f32, {n}),
        memory(Arena::host(Purpose::workspace, static_cast<std::size_t>(n * n * 8 + n * 64 + 512))),
        workspace(memory, n) {
    TestTensor b(DType::f32, {1, n, n});
    b.randomise(1);
    make_reference_kernels()->issue(SymmetricProduct{b, {}, x.view().reshape({1, n, n})});
  }
  void find(Kernels& kernels) const {
    kernels.issue(SymmetricEigenvectors{{x}, vectors, values, workspace});
  }
  void orthonormalise(Kernels& kernels) const {
    kernels.issue(OrthonormaliseRows{x, values, workspace});
  }
  std::vector<std::vector<float>> results() const { return {vectors.values(), values.values()}; }

  std::int64_t n;
  TestTensor x, vectors, values;
  Arena memory;
  DecompositionWorkspace workspace;
};

}  // namespace

TEST_CASE("decompositions are the library's, in the operation's memory or its own") {
  const auto before = solver();
  Gpu gpu;
  // The stand-in asks for more than LAPACK does where a side is odd; the second one is shorter.
  for (const std::int64_t n : {24, 25, 13, 64}) {
    Matrix found(n);
    Matrix wanted(n);
    found.find(gpu.kernels());
    wanted.find(*make_reference_kernels());
    CHECK(found.results() == wanted.results());
    found.orthonormalise(gpu.kernels());
    wanted.orthonormalise(*make_reference_kernels());
    CHECK(found.x.values() == wanted.x.values());
  }
  INFO(solver().last_refusal);
  CHECK(solver().misuses == before.misuses);
  CHECK(solver().in_float == before.in_float + 4);
  CHECK(solver().in_double == before.in_double);
  CHECK(solver().qr == before.qr + 4);
  CHECK(solver().bases == before.bases + 4);
}

TEST_CASE("what does not converge in fp32 is computed in fp64, and an error where that fails") {
  const auto before = solver();
  Gpu gpu;
  Matrix found(25);
  Matrix wanted(25);
  wanted.find(*make_reference_kernels());
  solver().failing_in_float = 1;
  found.find(gpu.kernels());
  CHECK(solver().in_double == before.in_double + 1);
  CHECK(relative_error(found.values.values(), wanted.values.values()) < 1e-6);
  // Eigenvectors have either sign.
  auto vectors = found.vectors.values();
  const auto expected = wanted.vectors.values();
  for (std::size_t row = 0; row < 25; ++row) {
    double inner = 0;
    for (auto at = row * 25; at < (row + 1) * 25; ++at) {
      inner += static_cast<double>(vectors[at]) * static_cast<double>(expected[at]);
    }
    for (auto at = row * 25; inner < 0 && at < (row + 1) * 25; ++at) vectors[at] = -vectors[at];
  }
  CHECK(relative_error(vectors, expected) < 1e-4);
  solver().failing_in_float = 1;
  solver().failing_in_double = 1;
  try {
    found.find(gpu.kernels());
    FAIL("there is no result");
  } catch (const trireme::base::Error& error) {
    const std::string text = error.what();
    CHECK(text.find("the eigendecomposition of a matrix [25, 25] failed (info 1)") !=
          std::string::npos);
  }
  CHECK(solver().misuses == before.misuses);
}

TEST_CASE("a matrix in two floats is decomposed in fp64, in the operation's memory or its own") {
  const auto before = solver();
  Gpu gpu;
  for (const std::int64_t n : {8, 25, 64}) {
    Matrix found(n);
    Matrix wanted(n);
    TestTensor low(DType::f32, {n, n});
    low.set(std::vector<float>(static_cast<std::size_t>(n * n), 0.0F));
    for (std::int64_t at = 0; at < n; ++at) low.f32_at(at * n + at) = 1e-9F;
    auto memory =
        Arena::host(Purpose::workspace, static_cast<std::size_t>(n * n * 24 + n * 96 + 512));
    const DecompositionWorkspace long_enough(memory, n, DecompositionWorkspace::Numbers::fp64);
    for (const auto& workspace : {found.workspace, long_enough}) {
      gpu.kernels().issue(
          SymmetricEigenvectors{{found.x, low}, found.vectors, found.values, workspace});
      make_reference_kernels()->issue(
          SymmetricEigenvectors{{wanted.x, low}, wanted.vectors, wanted.values, workspace});
      CHECK(found.results() == wanted.results());
    }
  }
  INFO(solver().last_refusal);
  CHECK(solver().misuses == before.misuses);
  CHECK(solver().in_double == before.in_double + 6);
  CHECK(solver().in_float == before.in_float);
}

TEST_CASE("a CUDA graph holds no decomposition") {
  auto kernels = trireme::base::value_or_throw(make_cuda_kernels(0, {.by = AttentionBy::own}));
  auto& device = kernels->device();
  auto arena = device.arena(Purpose::workspace, 1 << 14);
  const auto x = arena.allocate(DType::f32, {8, 8});
  const auto values = arena.allocate(DType::f32, {8});
  const DecompositionWorkspace workspace(arena, 8);
  kernels->issue(Fill{x, 1.0F});
  kernels->open_decompositions();
  device.begin_capture();
  CHECK_THROWS_AS(kernels->issue(OrthonormaliseRows{x, values, workspace}), CaptureRefused);
  device.abandon_capture();
  const auto before = solver();
  kernels->issue(OrthonormaliseRows{x, values, workspace});
  CHECK(solver().misuses == before.misuses);
  CHECK(solver().qr == before.qr + 1);
}
