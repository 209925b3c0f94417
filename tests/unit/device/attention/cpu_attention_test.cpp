// SPDX-License-Identifier: Apache-2.0
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Heads {
  std::int64_t batch;
  std::int64_t query_seq;
  std::int64_t key_seq;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};
const Heads shapes[] = {
    {2, 140, 140, 2, 2, 64},  // several blocks of queries, with a rest
    {1, 70, 530, 4, 2, 40},   // several blocks of keys, most of them from a cache
    {1, 90, 33, 2, 1, 72},    // queries that see no key
    {3, 1, 530, 8, 2, 128},   // one new token
    {1, 3, 77, 4, 4, 20},     // a few new tokens
};

/// Columns of one matrix, as a linear layer leaves them.
struct Fused {
  Fused(DType dtype, const Heads& s, Spread spread)
      : q(dtype, {s.batch, s.query_seq, s.heads * s.head_dim}, spread),
        kv(dtype, {s.batch, s.key_seq, 2 * s.kv_heads * s.head_dim}, spread),
        width(s.kv_heads * s.head_dim),
        head_dim(s.head_dim) {}

  Tensor queries() const { return q.view().split(2, head_dim); }
  Tensor keys() const { return kv.view().slice(2, 0, width).split(2, head_dim); }
  Tensor values() const { return kv.view().slice(2, width, width).split(2, head_dim); }

  TestTensor q;
  TestTensor kv;
  std::int64_t width;
  std::int64_t head_dim;
};

Results work(Kernels& kernels, DType dtype, const Heads& shape, const Attention& options) {
  const auto spread = Spread::strided;
  Fused in(dtype, shape, spread);
  Fused gradients(dtype, shape, spread);
  TestTensor out(dtype, {shape.batch, shape.query_seq, shape.heads, shape.head_dim}, spread);
  TestTensor d_out(dtype, {shape.batch, shape.query_seq, shape.heads, shape.head_dim}, spread);
  TestTensor lse(DType::f32, {shape.batch, shape.heads, shape.query_seq});
  in.q.randomise(1);
  in.kv.randomise(2);
  d_out.randomise(3);
  Attention attention = options;
  attention.q = in.queries();
  attention.k = in.keys();
  attention.v = in.values();
  attention.out = out;
  attention.lse = lse;
  attention.scale = 1.0F / std::sqrt(static_cast<float>(shape.head_dim));
  kernels.issue(attention);
  kernels.issue(AttentionBackward{attention, d_out, gradients.queries(), gradients.keys(),
                                  gradients.values()});
  auto results = all({out, gradients.q, gradients.kv});
  REQUIRE(lse.written_exactly());
  auto sums = lse.values();
  // Minus infinity where a query sees no key.
  for (auto& sum : sums) sum = std::isinf(sum) && sum < 0 ? -1e3F : sum;
  results.push_back(sums);
  return results;
}

}  // namespace

TEST_CASE("cpu attention equals the reference and no number of threads changes a bit") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for (const auto& shape : shapes) {
    for (const bool causal : {true, false}) {
      INFO((causal ? "causal" : "full")
           << " queries " << shape.query_seq << " keys " << shape.key_seq);
      Attention options;
      options.causal = causal;
      compare(dtype, [&](Kernels& kernels) { return work(kernels, dtype, shape, options); });
    }
  }
}

TEST_CASE("cpu attention drops the same weights as the reference") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for (const auto& shape : {shapes[0], shapes[1], shapes[4]}) {
    Attention options;
    options.dropout = {0.2F, 5, 6, 3, 1, shape.heads + 2};
    compare(dtype, [&](Kernels& kernels) { return work(kernels, dtype, shape, options); });
  }
}

TEST_CASE("cpu attention forgets nothing when scores grow from one block of keys to the next") {
  // The largest score comes last: every earlier sum must be brought down to it.
  const Heads shape{1, 8, 1200, 1, 1, 16};
  compare(DType::f32, [&](Kernels& kernels) {
    Fused in(DType::f32, shape, Spread::contiguous);
    in.q.randomise(1);
    in.kv.randomise(2);
    auto rising = in.kv.values();
    for (std::size_t i = 0; i < rising.size(); ++i) {
      const auto token = i / static_cast<std::size_t>(2 * shape.head_dim);
      rising[i] *= 0.01F * static_cast<float>(token);
    }
    in.kv.set(rising);
    TestTensor out(DType::f32, {1, shape.query_seq, 1, shape.head_dim});
    TestTensor lse(DType::f32, {1, 1, shape.query_seq});
    Attention attention;
    attention.q = in.queries();
    attention.k = in.keys();
    attention.v = in.values();
    attention.out = out;
    attention.lse = lse;
    kernels.issue(attention);
    return all({out, lse});
  });
}
