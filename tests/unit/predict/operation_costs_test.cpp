// SPDX-License-Identifier: Apache-2.0
#include "predict/operation_costs.hpp"

#include "machines.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

using namespace trireme::predict;
using trireme::tests::plain_machine;

TEST_CASE("an operation takes the longer of its FLOPs and its bytes") {
  auto machine = plain_machine();
  const OperationCosts slow_memory(machine, Precision::bf16, 1);
  // 2 x 100 x 200 x 300 FLOPs at 1 TFLOP/s are 12 us; 280,000 bytes at 1 GB/s are 220 us.
  const Product product{100, 200, 300};
  CHECK(seconds_of(slow_memory.product(product, Precision::bf16)) ==
        Approx(2.0 * (100 * 300 + 300 * 200 + 100 * 200) / 1e9));
  machine.node.memory_rate = 1e15;
  const OperationCosts fast_memory(machine, Precision::bf16, 1);
  CHECK(seconds_of(fast_memory.product(product, Precision::bf16)) == Approx(12e-6));
  CHECK(seconds_of(fast_memory.product(product, Precision::fp8)) == Approx(6e-6).epsilon(1e-3));
}

TEST_CASE("products fill whole waves of tiles") {
  auto machine = plain_machine();
  machine.tiles = {.processors = 4, .rows = 128, .columns = 256, .half_rate_terms = 0};
  const OperationCosts costs(machine, Precision::bf16, 1);
  // Four tiles are one wave; with a fifth, ten square tiles in three waves are faster than two.
  CHECK(costs.rate({512, 256, 64}, Precision::bf16) == Approx(1e12));
  CHECK(costs.rate({640, 256, 64}, Precision::bf16) == Approx(1e12 * 0.85 * 10 / 12));
  machine.tiles.half_rate_terms = 64;
  CHECK(costs.rate({512, 256, 64}, Precision::bf16) == Approx(0.5e12));
}

TEST_CASE("a measured product has its own rate, and one between two a rate between theirs") {
  auto machine = plain_machine();
  machine.products = {{1024, 1024, 1024, 0.4e12}, {4096, 4096, 4096, 0.8e12}};
  const OperationCosts costs(machine, Precision::bf16, 1);
  CHECK(costs.rate({1024, 1024, 1024}, Precision::bf16) == Approx(0.4e12));
  CHECK(costs.rate({4096, 4096, 4096}, Precision::bf16) == Approx(0.8e12));
  CHECK(costs.rate({2048, 2048, 2048}, Precision::bf16) == Approx(std::sqrt(0.4 * 0.8) * 1e12));
}

TEST_CASE("fused attention skips what the mask hides, and other attention passes scores") {
  auto machine = plain_machine();
  machine.node.memory_rate = 1e15;
  const OperationCosts costs(machine, Precision::bf16, 1);
  Attention attention{
      .rows = 64, .keys = 64, .query_width = 32, .kv_width = 32, .heads = 2, .fused = true};
  // Two products of 2 x 64 x 64 x 32 FLOPs, half of them; five in backward.
  CHECK(seconds_of(costs.attention(attention)) == Approx(64 * 64 * 32 * 2 / 1e12));
  CHECK(seconds_of(costs.attention_backward(attention)) == Approx(64 * 64 * 32 * 5 / 1e12));
  machine.node.memory_rate = 1e9;
  attention.fused = false;
  CHECK(seconds_of(costs.attention(attention)) ==
        Approx(2 * 2 * 64 * 64 * 32 / 0.6e12 + 6 * 2 * 64 * 64 * 2 / 1e9));
}

TEST_CASE("decompositions take the rate of fp32, whatever products are in") {
  auto machine = plain_machine();
  machine.node.peak_fp32 = 1e10;
  machine.share.product = 0.5;
  const OperationCosts costs(machine, Precision::bf16, 1);
  CHECK(seconds_of(costs.flops(1e9)) == Approx(2e-3));
  CHECK(seconds_of(costs.decomposition(1e9)) == Approx(0.2));
}

TEST_CASE("a rank on its share of a node's cores has that share of its rates") {
  const auto machine = plain_machine();
  const OperationCosts whole(machine, Precision::fp32, 1);
  const OperationCosts quarter(machine, Precision::fp32, 0.25);
  CHECK(quarter.pass(1000) == 4 * whole.pass(1000));
  CHECK(quarter.flops(1e9) == 4 * whole.flops(1e9));
  auto measured = machine;
  measured.products = {{1024, 1024, 1024, 0.4e12}};
  const OperationCosts half(measured, Precision::bf16, 0.5);
  CHECK(half.rate({1024, 1024, 1024}, Precision::bf16) == Approx(0.2e12));
  CHECK(half.rate({512, 64, 1024}, Precision::bf16) == Approx(0.2e12));
}
