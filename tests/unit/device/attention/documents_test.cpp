// SPDX-License-Identifier: Apache-2.0
// Documents that lie in one sequence and do not see each other (Attention::first_keys).
#include "unit/device/backends.hpp"
#include "unit/device/compare.hpp"

#include <cmath>
#include <numeric>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// Lengths of the documents of one sequence.
using Lengths = std::vector<std::int64_t>;

/// Sequences of the same length.
struct Packing {
  std::vector<Lengths> sequences;
  std::int64_t heads = 2;
  std::int64_t kv_heads = 1;
  std::int64_t head_dim = 20;
  Spread spread = Spread::contiguous;

  std::int64_t batch() const { return static_cast<std::int64_t>(sequences.size()); }
  std::int64_t length() const {
    const auto& first = sequences.front();
    return std::accumulate(first.begin(), first.end(), std::int64_t{0});
  }
};

/// Tensors of attention to a packing, each in memory of its own.
struct PackedTensors {
  PackedTensors(DType dtype, const Packing& packing)
      : q(wide(dtype, packing)),
        k(grouped(dtype, packing)),
        v(grouped(dtype, packing)),
        out(wide(dtype, packing)),
        lse(DType::f32, {packing.batch(), packing.heads, packing.length()}),
        d_out(wide(dtype, packing)),
        dq(wide(dtype, packing)),
        dk(grouped(dtype, packing)),
        dv(grouped(dtype, packing)),
        first_keys(DType::i32, {packing.batch(), packing.length()}) {
    q.randomise(1);
    k.randomise(2);
    v.randomise(3);
    d_out.randomise(4);
    std::vector<std::int32_t> firsts;
    for (const auto& lengths : packing.sequences) {
      std::int64_t first = 0;
      for (const auto length : lengths) {
        firsts.insert(firsts.end(), static_cast<std::size_t>(length),
                      static_cast<std::int32_t>(first));
        first += length;
      }
    }
    first_keys.set_integers(firsts);
  }

  static TestTensor wide(DType dtype, const Packing& packing) {
    return {dtype,
            {packing.batch(), packing.length(), packing.heads, packing.head_dim},
            packing.spread};
  }
  static TestTensor grouped(DType dtype, const Packing& packing) {
    return {dtype,
            {packing.batch(), packing.length(), packing.kv_heads, packing.head_dim},
            packing.spread};
  }

  AttentionBackward backward() const {
    Attention attention{.q = q, .k = k, .v = v, .out = out, .lse = lse};
    attention.scale = 1.0F / std::sqrt(static_cast<float>(attention.q.dim(3)));
    return {attention, d_out, dq, dk, dv};
  }
  AttentionBackward masked() const {
    auto call = backward();
    call.forward.first_keys = first_keys;
    return call;
  }
  Results results() const { return all({out, lse, dq, dk, dv}); }

  TestTensor q, k, v, out, lse, d_out, dq, dk, dv, first_keys;
};

void issue_both(Kernels& kernels, const AttentionBackward& call) {
  kernels.issue(call.forward);
  kernels.issue(call);
}

/// Tokens [begin, begin + count) of sequence `sequence` by themselves.
AttentionBackward alone(AttentionBackward call, const Tensor& lse, std::int64_t sequence,
                        std::int64_t begin, std::int64_t count) {
  auto& forward = call.forward;
  for (auto* tensor : {&forward.q, &forward.k, &forward.v, &forward.out, &call.d_out, &call.dq,
                       &call.dk, &call.dv}) {
    *tensor = tensor->slice(0, sequence, 1).slice(1, begin, count);
  }
  forward.lse = lse;
  return call;
}

/// Each document by itself: its lse is not where that of whole sequences lies.
Results documents_alone(Kernels& kernels, DType dtype, const Packing& packing) {
  PackedTensors tensors(dtype, packing);
  for (std::int64_t sequence = 0; sequence < packing.batch(); ++sequence) {
    std::int64_t begin = 0;
    for (const auto length : packing.sequences[static_cast<std::size_t>(sequence)]) {
      TestTensor lse(DType::f32, {1, packing.heads, length});
      issue_both(kernels, alone(tensors.backward(), lse, sequence, begin, length));
      begin += length;
    }
  }
  return all({tensors.out, tensors.dq, tensors.dk, tensors.dv});
}

Results packed(Kernels& kernels, DType dtype, const Packing& packing) {
  PackedTensors tensors(dtype, packing);
  issue_both(kernels, tensors.masked());
  CHECK(tensors.lse.written_exactly());
  return all({tensors.out, tensors.dq, tensors.dk, tensors.dv});
}

/// Documents of one token and of many, borders in and between tiles, grouped heads.
const Packing packings[] = {
    {.sequences = {{5, 1, 1, 9, 32, 22}, {70}}, .spread = Spread::strided},
    {.sequences = {{33, 64, 3}, {1, 98, 1}, {32, 32, 36}}, .heads = 4, .kv_heads = 2},
    {.sequences = {{7}}, .heads = 1, .head_dim = 50},
    {.sequences = {{40, 5}}, .heads = 3, .kv_heads = 3, .head_dim = 128}};

}  // namespace

TEST_CASE("attention of packed documents equals the reference's, with dropout or without") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto rate = GENERATE(0.0F, 0.25F);
  for (const auto& packing : packings) {
    compare(dtype, [&](Kernels& kernels) {
      const PackedTensors tensors(dtype, packing);
      auto call = tensors.masked();
      call.forward.dropout = {rate, run_seed(), 3, 2, 1, packing.heads + 2};
      issue_both(kernels, call);
      return tensors.results();
    });
  }
}

TEST_CASE("a document attends as it does by itself, whatever lies beside it") {
  for_each_backend([](Kernels& kernels) {
    for (const auto& packing : packings) {
      const auto expected = documents_alone(kernels, DType::f32, packing);
      const auto found = packed(kernels, DType::f32, packing);
      for (std::size_t i = 0; i < expected.size(); ++i) {
        INFO("result " << i << " of " << packing.length() << " tokens");
        CHECK(relative_error(found[i], expected[i]) <= 1e-6);
      }
    }
  });
}

TEST_CASE("one document in a sequence has the bits of attention without a mask") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const Packing whole{.sequences = {{100}, {100}}, .heads = 4, .kv_heads = 2};
  for_each_backend([&](Kernels& kernels) {
    const PackedTensors plain(dtype, whole);
    issue_both(kernels, plain.backward());
    const PackedTensors masked(dtype, whole);
    issue_both(kernels, masked.masked());
    CHECK((masked.results() == plain.results()));
  });
}

TEST_CASE("the last queries of a sequence have the bits that they have among all") {
  const auto& packing = packings[1];
  for_each_backend([&](Kernels& kernels) {
    const PackedTensors whole(DType::f32, packing);
    issue_both(kernels, whole.masked());
    const auto expected = whole.results().front();
    for (const auto& [first, count] : {std::pair{50, 25}, {25, 8}, {75, 25}}) {
      INFO("queries from " << first << " on");
      const PackedTensors tensors(DType::f32, packing);
      auto forward = tensors.masked().forward;
      TestTensor lse(DType::f32, {packing.batch(), packing.heads, count});
      for (auto* tensor : {&forward.q, &forward.out, &forward.first_keys}) {
        *tensor = tensor->slice(1, first, count);
      }
      for (auto* tensor : {&forward.k, &forward.v}) *tensor = tensor->slice(1, 0, first + count);
      forward.lse = lse;
      kernels.issue(forward);
      const auto found = tensors.out.values();
      const auto row = static_cast<std::size_t>(packing.heads * packing.head_dim);
      for (std::int64_t sequence = 0; sequence < packing.batch(); ++sequence) {
        const auto begin = static_cast<std::ptrdiff_t>(row) * (sequence * 100 + first);
        const auto end = begin + static_cast<std::ptrdiff_t>(row) * count;
        CHECK(std::equal(found.begin() + begin, found.begin() + end, expected.begin() + begin));
      }
    }
  });
}
