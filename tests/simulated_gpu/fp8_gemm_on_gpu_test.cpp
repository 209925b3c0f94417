// SPDX-License-Identifier: Apache-2.0
// GEMMs of FP8 copies on a GPU, as gemm_on_gpu_test.cpp has the others.
#include "simulated_gpu/gemm_layer.hpp"
#include "simulated_gpu/watched_gpu.hpp"

#include <catch2/catch.hpp>

#include <limits>
#include <memory>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// Operands of a GEMM of FP8 copies, and what it should be.
class Fp8Layer {
 public:
  Quantised quantised(std::int64_t height, std::uint64_t stream) {
    const auto numbers = random(height, in, stream);
    const auto magnitude = arena_.allocate(DType::f32, {1});
    const Quantised copy{arena_.allocate(DType::e4m3, {height, in}),
                         arena_.allocate(DType::f32, {1})};
    reference_->issue(LargestMagnitude{numbers, magnitude});
    reference_->issue(Quantise{numbers, magnitude, copy});
    return copy;
  }
  Tensor random(std::int64_t height, std::int64_t width, std::uint64_t stream) {
    TestTensor numbers(DType::bf16, {height, width});
    numbers.randomise(stream);
    const auto tensor = arena_.allocate(DType::bf16, {height, width});
    reference_->issue(Copy{numbers, tensor});
    return tensor;
  }
  void check(Gpu& gpu, const Tensor& bias) const {
    gpu.kernels().issue(LinearForwardQuantised{x, w, bias, y});
    reference_->issue(LinearForwardQuantised{x, w, bias, wanted_});
    CHECK(relative_error(GemmLayer::values(y), GemmLayer::values(wanted_)) < 1e-2);
  }

 private:
  std::unique_ptr<Kernels> reference_ = make_reference_kernels();
  Arena arena_ = Arena::host(Purpose::activations, std::size_t{1} << 20);
  Tensor wanted_ = arena_.allocate(DType::bf16, {rows, out});

 public:
  const Quantised x = quantised(rows, 1);
  const Quantised w = quantised(out, 2);
  const Tensor y = arena_.allocate(DType::bf16, {rows, out});
};

}  // namespace

TEST_CASE("FP8 products take no memory of their own, and a bias wherever it lies") {
  const Watch watch;
  Fp8Layer layer;
  const auto biases = layer.random(1, out + 3, 3).reshape({out + 3});
  Gpu gpu;
  const auto before = gpu.device().taken_bytes();
  for (const std::int64_t shift : {0, 3}) layer.check(gpu, biases.slice(0, shift, out));
  layer.check(gpu, {});
  CHECK(gpu.device().taken_bytes() == before);
  CHECK(watch.all() == 3);
  CHECK(watch.with_epilogue() == 1);
  watch.check_use();
}

TEST_CASE("products are timed on numbers such as training has, in every type") {
  // A GPU's clock depends on the bits that change: it keeps others on zeros, and on what is not
  // finite.
  Gpu gpu;
  Fp8Layer layer;
  std::vector<GemmCall> quantised;
  make_gemm_collecting_kernels(quantised)->issue(
      LinearForwardQuantised{layer.x, layer.w, {}, layer.y});
  for (const auto& calls : {GemmLayer().calls(), quantised}) {
    controls().smallest_operand = std::numeric_limits<double>::infinity();
    controls().largest_operand = 0;
    CHECK(gpu.tuning().choose(calls) > 0);
    CHECK(controls().smallest_operand > 0.85);
    CHECK(controls().largest_operand < 1.15);
  }
}

TEST_CASE("FP8 products are timed, and the fastest way is kept and taken") {
  Fp8Layer layer;
  const auto bias = layer.random(1, out, 3).reshape({out});
  std::vector<GemmCall> calls;
  const auto recording = make_gemm_collecting_kernels(calls);
  recording->issue(LinearForwardQuantised{layer.x, layer.w, bias, layer.y});
  recording->issue(LinearForwardQuantised{layer.x, layer.w, {}, layer.y});
  Gpu gpu;
  const Watch all;
  CHECK(gpu.tuning().choose(calls) == 2);
  // Some are slow, and were tried.
  CHECK(all.slow() > 0);
  CHECK(gpu.tuning().choose(calls) == 0);
  CHECK(gpu.tuning().text().find("e4m3>bf16") != std::string::npos);
  const Watch chosen;
  layer.check(gpu, bias);
  layer.check(gpu, {});
  CHECK(chosen.slow() == 0);
  CHECK(chosen.all() == 2);
  all.check_use();
  // Another run that adopts the list takes the same candidates.
  Gpu other;
  const std::vector<std::string> texts{gpu.tuning().text()};
  REQUIRE(other.tuning().adopt(texts).ok());
  CHECK(other.tuning().choose(calls) == 0);
}
