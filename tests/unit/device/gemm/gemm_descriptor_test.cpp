// SPDX-License-Identifier: Apache-2.0
#include "device/cuda/gemm/descriptor.hpp"

#include <catch2/catch.hpp>

using namespace trireme::device;
using namespace trireme::device::cuda;

namespace {

/// A layer of GPT-2 124M for 32768 tokens.
GemmDescriptor up(Epilogue epilogue) {
  GemmDescriptor gemm;
  gemm.m = 3072;
  gemm.n = 32768;
  gemm.k = 768;
  gemm.in = DType::bf16;
  gemm.out = DType::bf16;
  gemm.epilogue = epilogue;
  return gemm;
}

}  // namespace

TEST_CASE("an epilogue pays while a kernel of its own would take longer than what it adds") {
  // 4 bytes of each result in the time of 768 * 2 operations: half as long as the gemm.
  CHECK(epilogue_pays(up(Epilogue::gelu_bias), 1.5, 1.0));
  CHECK(!epilogue_pays(up(Epilogue::gelu_bias), 1.6, 1.0));
  CHECK(epilogue_pays(up(Epilogue::gelu_gradient), 1.7, 1.0));
  CHECK(!epilogue_pays(up(Epilogue::gelu_gradient), 1.9, 1.0));
  // The gradient of a bias would be one more look at dy, [tokens, 3072]: a quarter.
  GemmDescriptor weight;
  weight.m = 768;
  weight.n = 3072;
  weight.k = 32768;
  weight.in = DType::bf16;
  weight.out = DType::f32;
  weight.epilogue = Epilogue::bias_gradient;
  CHECK(epilogue_pays(weight, 1.2, 1.0));
  CHECK(!epilogue_pays(weight, 1.3, 1.0));
  // Faster is always worth it.
  CHECK(epilogue_pays(weight, 0.9, 1.0));
}
