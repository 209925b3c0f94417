// SPDX-License-Identifier: Apache-2.0
#include "unit/device/compare.hpp"

#include <array>
#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Heads {
  std::int64_t batch;
  std::int64_t queries;
  std::int64_t keys;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};

/// Grouped heads, tiles that are not full, more keys than queries and the reverse.
constexpr std::array<Heads, 7> shapes{{{1, 1, 1, 1, 1, 64},
                                       {2, 37, 37, 2, 2, 64},
                                       {1, 45, 45, 4, 2, 128},
                                       {1, 19, 70, 3, 1, 64},
                                       {1, 40, 33, 2, 1, 32},
                                       {1, 33, 33, 1, 1, 50},
                                       {1, 5, 34, 2, 1, 128}}};

void compare_attention(DType dtype, const Heads& s, bool causal, float rate) {
  INFO("batch " << s.batch << ", queries " << s.queries << ", keys " << s.keys << ", heads "
                << s.heads << "/" << s.kv_heads << " of " << s.head_dim << ", causal " << causal);
  const auto spread = s.head_dim == 64 ? Spread::strided : Spread::contiguous;
  compare(dtype, [&](Kernels& kernels) {
    const auto wide = [&] {
      return TestTensor(dtype, {s.batch, s.queries, s.heads, s.head_dim}, spread);
    };
    const auto grouped = [&] {
      return TestTensor(dtype, {s.batch, s.keys, s.kv_heads, s.head_dim}, spread);
    };
    auto q = wide();
    auto k = grouped();
    auto v = grouped();
    auto out = wide();
    TestTensor lse(DType::f32, {s.batch, s.heads, s.queries});
    auto d_out = wide();
    auto dq = wide();
    auto dk = grouped();
    auto dv = grouped();
    q.randomise(1);
    k.randomise(2);
    v.randomise(3);
    d_out.randomise(4);
    Attention attention{q,      k, v, out, lse, 1.0F / std::sqrt(static_cast<float>(s.head_dim)),
                        causal, {}};
    attention.dropout = {rate, run_seed(), 3, 2, 1, s.heads + 2};
    kernels.issue(attention);
    auto results = all({out});
    results.push_back(lse.values());
    for (float& value : results.back()) {
      // A query that sees nothing has minus infinity, which no norm takes.
      if (std::isinf(value)) value = -1e3F;
    }
    kernels.issue(AttentionBackward{attention, d_out, dq, dk, dv});
    for (auto& result : all({dq, dk, dv})) results.push_back(result);
    return results;
  });
}

}  // namespace

TEST_CASE("attention equals the reference on odd shapes") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto causal = GENERATE(true, false);
  for (const auto& shape : shapes) compare_attention(dtype, shape, causal, 0.0F);
}

TEST_CASE("attention drops what the reference drops") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  compare_attention(dtype, shapes[3], true, 0.25F);
}
