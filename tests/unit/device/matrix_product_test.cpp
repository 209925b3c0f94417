#include "device/cuda/gemm/descriptor.hpp"

#include <catch2/catch.hpp>

using namespace trireme::device;
using namespace trireme::device::cuda;

namespace {

/// A layer of GPT-2 124M for 32768 tokens.
MatrixProduct up(Epilogue epilogue) {
  MatrixProduct product;
  product.m = 3072;
  product.n = 32768;
  product.k = 768;
  product.in = DType::bf16;
  product.out = DType::bf16;
  product.epilogue = epilogue;
  return product;
}

}  // namespace

TEST_CASE("an epilogue pays while a kernel of its own would take longer than what it adds") {
  // 4 bytes of each result in the time of 768 * 2 operations: half as long as the product.
  CHECK(epilogue_pays(up(Epilogue::gelu_bias), 1.5, 1.0));
  CHECK(!epilogue_pays(up(Epilogue::gelu_bias), 1.6, 1.0));
  CHECK(epilogue_pays(up(Epilogue::gelu_gradient), 1.7, 1.0));
  CHECK(!epilogue_pays(up(Epilogue::gelu_gradient), 1.9, 1.0));
  // The gradient of a bias would be one more look at dy, [tokens, 3072]: a quarter.
  MatrixProduct weight;
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
