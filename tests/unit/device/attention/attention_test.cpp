// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct Shape {
  std::int64_t batch;
  std::int64_t query_seq;
  std::int64_t key_seq;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};
const Shape shapes[] = {
    {1, 1, 1, 1, 1, 1},    {2, 5, 5, 4, 4, 8},  // multi-head
    {2, 7, 7, 6, 2, 16},                        // grouped
    {1, 33, 33, 3, 1, 12},                      // multi-query, odd sizes
    {2, 3, 9, 4, 2, 8},                         // a key cache
    {1, 1, 40, 2, 1, 24},                       // one new token
};

/// q, k and v as columns of one fused matrix, as a linear layer leaves them.
struct Case {
  Shape shape;
  TestTensor q_fused;
  TestTensor kv_fused;
  TestTensor out;
  TestTensor lse;
  Attention attention;

  Case(DType dtype, const Shape& s, bool causal)
      : shape(s),
        q_fused(dtype, {s.batch, s.query_seq, s.heads * s.head_dim}, Spread::strided),
        kv_fused(dtype, {s.batch, s.key_seq, 2 * s.kv_heads * s.head_dim}),
        out(dtype, {s.batch, s.query_seq, s.heads, s.head_dim}, Spread::strided),
        lse(DType::f32, {s.batch, s.heads, s.query_seq}) {
    q_fused.randomise(1);
    kv_fused.randomise(2);
    const auto width = s.kv_heads * s.head_dim;
    attention.q = q_fused.view().split(2, s.head_dim);
    attention.k = kv_fused.view().slice(2, 0, width).split(2, s.head_dim);
    attention.v = kv_fused.view().slice(2, width, width).split(2, s.head_dim);
    attention.out = out;
    attention.lse = lse;
    attention.scale = 1.0F / std::sqrt(static_cast<float>(s.head_dim));
    attention.causal = causal;
  }
};

float element(const Tensor& x, std::int64_t a, std::int64_t b, std::int64_t c, std::int64_t d) {
  const auto offset = a * x.stride(0) + b * x.stride(1) + c * x.stride(2) + d;
  return x.dtype() == DType::f32 ? x.f32()[offset] : to_float(x.bf16()[offset]);
}

/// Textbook softmax(q k) v in double, one query and head.
struct Naive {
  std::vector<double> out;
  double lse = 0;

  Naive(const Attention& a, std::int64_t batch, std::int64_t query, std::int64_t head) {
    const auto kv = head / (a.q.dim(2) / a.k.dim(2));
    std::vector<double> scores;
    for (std::int64_t key = 0; key < a.k.dim(1); ++key) {
      if (a.causal && key > query + a.k.dim(1) - a.q.dim(1)) break;
      double sum = 0;
      for (std::int64_t d = 0; d < a.q.dim(3); ++d) {
        sum += static_cast<double>(element(a.q, batch, query, head, d)) *
               static_cast<double>(element(a.k, batch, key, kv, d));
      }
      scores.push_back(sum * static_cast<double>(a.scale));
    }
    double total = 0;
    for (const auto score : scores) total += std::exp(score);
    lse = std::log(total);
    out.resize(static_cast<std::size_t>(a.q.dim(3)));
    for (std::size_t key = 0; key < scores.size(); ++key) {
      for (std::size_t d = 0; d < out.size(); ++d) {
        out[d] += std::exp(scores[key]) / total *
                  static_cast<double>(element(a.v, batch, static_cast<std::int64_t>(key), kv,
                                              static_cast<std::int64_t>(d)));
      }
    }
  }
};

struct Gradients {
  TestTensor dq;
  TestTensor dkv;
  AttentionBackward backward;

  Gradients(const Case& forward, const Tensor& d_out)
      : dq(d_out.dtype(), {forward.shape.batch, forward.shape.query_seq, forward.shape.heads,
                           forward.shape.head_dim}),
        dkv(d_out.dtype(), {forward.shape.batch, forward.shape.key_seq,
                            2 * forward.shape.kv_heads * forward.shape.head_dim}) {
    const auto width = forward.shape.kv_heads * forward.shape.head_dim;
    backward = {forward.attention, d_out, dq,
                dkv.view().slice(2, 0, width).split(2, forward.shape.head_dim),
                dkv.view().slice(2, width, width).split(2, forward.shape.head_dim)};
  }
};

}  // namespace

TEST_CASE("attention equals a textbook softmax, heads grouped or not, with a key cache or not") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto causal = GENERATE(true, false);
  for_each_backend([&](Kernels& kernels) {
    for (const auto& shape : shapes) {
      INFO(name(dtype) << (causal ? " causal" : " full") << " queries " << shape.query_seq
                       << " keys " << shape.key_seq << " heads " << shape.heads << "/"
                       << shape.kv_heads << " x " << shape.head_dim);
      Case test(dtype, shape, causal);
      kernels.issue(test.attention);
      CHECK(test.out.written_exactly());
      CHECK(test.lse.written_exactly());
      std::vector<float> out;
      std::vector<float> lse(static_cast<std::size_t>(shape.batch * shape.heads * shape.query_seq));
      for (std::int64_t b = 0; b < shape.batch; ++b) {
        for (std::int64_t i = 0; i < shape.query_seq; ++i) {
          for (std::int64_t h = 0; h < shape.heads; ++h) {
            const Naive naive(test.attention, b, i, h);
            for (const auto value : naive.out) out.push_back(static_cast<float>(value));
            lse[static_cast<std::size_t>((b * shape.heads + h) * shape.query_seq + i)] =
                static_cast<float>(naive.lse);
          }
        }
      }
      CHECK(relative_error(test.out.values(), out) < (dtype == DType::f32 ? 1e-5 : 1e-2));
      for (std::size_t i = 0; i < lse.size(); ++i) {
        CHECK(test.lse.values()[i] == Approx(lse[i]).margin(dtype == DType::f32 ? 1e-5 : 1e-2));
      }
    }
  });
}

TEST_CASE("attention keeps no sum of exponentials when none is asked for") {
  for_each_backend([](Kernels& kernels) {
    Case with(DType::f32, shapes[2], true);
    Case without(DType::f32, shapes[2], true);
    without.attention.lse = {};
    kernels.issue(with.attention);
    kernels.issue(without.attention);
    CHECK(with.out.values() == without.out.values());
  });
}

TEST_CASE("attention survives scores that would overflow an exponential") {
  for_each_backend([](Kernels& kernels) {
    Case test(DType::f32, shapes[2], true);
    test.q_fused.randomise(1, 300.0F);
    kernels.issue(test.attention);
    for (const auto value : test.out.values()) REQUIRE(std::isfinite(value));
  });
}

TEST_CASE("gradients of attention agree with finite differences") {
  const auto causal = GENERATE(true, false);
  const auto rate = GENERATE(0.0F, 0.3F);
  for_each_backend([&](Kernels& kernels) {
    for (const auto& shape : {shapes[1], shapes[2], shapes[4]}) {
      INFO((causal ? "causal" : "full")
           << " dropout " << rate << " heads " << shape.heads << "/" << shape.kv_heads);
      Case test(DType::f32, shape, causal);
      test.attention.dropout = {rate, 11, 12, 2, 0, shape.heads};
      TestTensor d_out(DType::f32, {shape.batch, shape.query_seq, shape.heads, shape.head_dim});
      d_out.randomise(3);
      kernels.issue(test.attention);
      Gradients gradients(test, d_out);
      kernels.issue(gradients.backward);
      CHECK(gradients.dq.written_exactly());
      CHECK(gradients.dkv.written_exactly());
      const auto loss = [&] {
        kernels.issue(test.attention);
        return dot(test.out.values(), d_out.values());
      };
      CHECK(gradient_error(test.q_fused, gradients.dq.values(), loss) < 1e-3);
      CHECK(gradient_error(test.kv_fused, gradients.dkv.values(), loss) < 1e-3);
    }
  });
}

TEST_CASE("a query that sees one key has no gradient of its score") {
  for_each_backend([](Kernels& kernels) {
    for (const auto& shape : {shapes[1], shapes[2], shapes[3]}) {
      Case test(DType::f32, shape, true);
      TestTensor d_out(DType::f32, {shape.batch, shape.query_seq, shape.heads, shape.head_dim});
      // Only the first query of each sequence matters, and it sees one key.
      d_out.randomise(3);
      auto first = d_out.values();
      const auto row = static_cast<std::size_t>(shape.heads * shape.head_dim);
      const auto sequence = row * static_cast<std::size_t>(shape.query_seq);
      for (std::size_t i = 0; i < first.size(); ++i) {
        if (i % sequence >= row) first[i] = 0;
      }
      d_out.set(first);
      kernels.issue(test.attention);
      Gradients gradients(test, d_out);
      kernels.issue(gradients.backward);
      for (const auto value : gradients.dq.values()) REQUIRE(value == 0.0F);
      const auto dkv = gradients.dkv.values();
      const auto width = static_cast<std::size_t>(shape.kv_heads * shape.head_dim);
      bool any_value = false;
      for (std::size_t i = 0; i < dkv.size(); ++i) {
        if (i % (2 * width) < width) REQUIRE(dkv[i] == 0.0F);
        any_value = any_value || dkv[i] != 0.0F;
      }
      CHECK(any_value);
    }
  });
}

TEST_CASE("dropout in attention may count its sequences from a number in memory") {
  for_each_backend([](Kernels& kernels) {
    const Shape shape{2, 9, 9, 4, 4, 8};
    const std::int64_t first = 5000000000;
    TestTensor base(DType::i32, {2});
    std::memcpy(base.view().raw(), &first, sizeof first);
    Case expected(DType::f32, shape, true);
    expected.attention.dropout = {0.5F, 1, 2, first + 3, 0, 4};
    kernels.issue(expected.attention);
    Case found(DType::f32, shape, true);
    found.attention.dropout = {0.5F, 1, 2, 3, 0, 4, base};
    kernels.issue(found.attention);
    CHECK(found.out.values() == expected.out.values());
  });
}

TEST_CASE("dropout in attention does not depend on which rank has which heads or sequences") {
  for_each_backend([](Kernels& kernels) {
    const Shape shape{2, 9, 9, 4, 4, 8};
    Case whole(DType::f32, shape, true);
    whole.attention.dropout = {0.5F, 1, 2, 10, 0, 4};
    kernels.issue(whole.attention);
    Case parts(DType::f32, shape, true);
    kernels.issue(parts.attention);
    CHECK(parts.out.values() != whole.out.values());
    for (std::int64_t batch = 0; batch < 2; ++batch) {
      for (std::int64_t head = 0; head < 4; head += 2) {
        auto part = parts.attention;
        part.lse = {};
        for (auto* tensor : {&part.q, &part.k, &part.v, &part.out}) {
          *tensor = tensor->slice(0, batch, 1).slice(2, head, 2);
        }
        part.dropout = {0.5F, 1, 2, 10 + batch, head, 4};
        kernels.issue(part);
      }
    }
    CHECK(parts.out.values() == whole.out.values());
  });
}

TEST_CASE("runs of queries with the keys before them give the bits of whole sequences") {
  for_each_backend([](Kernels& kernels) {
    constexpr std::int64_t run = 12;
    const Shape shape{2, 4 * run, 4 * run, 4, 2, 8};
    for (const float rate : {0.0F, 0.5F}) {
      Case whole(DType::f32, shape, true);
      whole.attention.dropout = {rate, 1, 2, 10, 0, 4};
      kernels.issue(whole.attention);
      Case runs(DType::f32, shape, true);
      for (std::int64_t first = 0; first < shape.query_seq; first += run) {
        auto part = runs.attention;
        part.lse = {};
        part.q = part.q.slice(1, first, run);
        part.out = part.out.slice(1, first, run);
        part.k = part.k.slice(1, 0, first + run);
        part.v = part.v.slice(1, 0, first + run);
        part.dropout = whole.attention.dropout;
        part.sequence_length = shape.key_seq;
        kernels.issue(part);
      }
      CHECK(runs.out.values() == whole.out.values());
    }
  });
}
