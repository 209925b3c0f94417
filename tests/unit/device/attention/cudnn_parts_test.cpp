// SPDX-License-Identifier: Apache-2.0
// How the backward of cuDNN's attention is cut, and what it takes.
#include "trireme/device/library_memory.hpp"

#include "device/cuda/attention/cudnn/attention.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <tuple>
#include <vector>

using namespace trireme::device;
using namespace trireme::device::cudnn;

namespace {

constexpr std::size_t gibibyte = std::size_t{1} << 30;

AttentionExtents extents_of(std::int64_t batch, std::int64_t seq, std::int64_t heads,
                            std::int64_t kv_heads, std::int64_t head_dim) {
  AttentionExtents extents;
  extents.causal = true;
  extents.q = extents.out = dense(batch, heads, seq, head_dim);
  extents.k = extents.v = dense(batch, kv_heads, seq, head_dim);
  return extents;
}

/// Each query of each head of each sequence is in one part, which sees all of its keys.
void require_cover(const AttentionExtents& whole, const BackwardParts& parts) {
  const auto group = whole.heads() / whole.kv_heads();
  std::vector<std::int64_t> next(static_cast<std::size_t>(whole.batch() * whole.heads()), 0);
  std::vector<std::int64_t> order;
  for (const auto& part : parts.list()) {
    const bool whole_heads = part.terms == BackwardPart::Terms::all;
    REQUIRE(part.keys == (whole_heads ? whole.keys() : part.first_query + part.queries));
    REQUIRE(part.first_of_group + part.of_group <= group);
    // A part of several sequences has all heads: its lse is contiguous.
    CHECK((part.sequences == 1 || part.kv_heads == whole.kv_heads()));
    if (!whole_heads) REQUIRE((part.sequences == 1 && part.kv_heads == 1));
    for (auto s = part.first_sequence; s < part.first_sequence + part.sequences; ++s) {
      for (auto k = part.first_kv_head; k < part.first_kv_head + part.kv_heads; ++k) {
        if (order.empty() || order.back() != s * whole.kv_heads() + k) {
          order.push_back(s * whole.kv_heads() + k);
        }
        for (auto g = part.first_of_group; g < part.first_of_group + part.of_group; ++g) {
          auto& at = next[static_cast<std::size_t>((s * whole.kv_heads() + k) * group + g)];
          REQUIRE(at == part.first_query);
          at += part.queries;
        }
      }
    }
  }
  for (const auto at : next) REQUIRE(at == whole.queries());
  // Parts whose terms are summed follow one another.
  CHECK(std::set(order.begin(), order.end()).size() == order.size());
}

}  // namespace

TEST_CASE("a backward that needs much workspace is cut into sequences, then heads, then queries") {
  const auto extents = extents_of(6, 1024, 32, 8, 128);
  const auto parts_of = [&](std::size_t most) {
    const BackwardParts parts(extents, AttentionBits::repeatable, most);
    require_cover(extents, parts);
    return parts.list();
  };
  const BackwardParts undivided(extents, AttentionBits::repeatable, 1024 * gibibyte);
  const auto whole = undivided.workspace_bytes();
  REQUIRE(undivided.list().size() == 1);
  // The scores' gradient in bf16, dk and dv of all heads, row sums.
  CHECK(whole >= 6U * 32 * 1024 * 1024 * 2 + 2U * 6 * 32 * 1024 * 128 * 2 + 6U * 32 * 1024 * 4);
  const auto one =
      BackwardParts(extents_of(1, 1024, 32, 8, 128), AttentionBits::repeatable, 1024 * gibibyte)
          .workspace_bytes();
  CHECK(parts_of(6 * one).size() == 1);
  CHECK(parts_of(3 * one).size() == 2);
  CHECK(parts_of(one).size() == 6);
  // Not five and one.
  for (const auto& part : parts_of(5 * one)) CHECK(part.sequences == 3);
  CHECK(parts_of(one - 1).size() == 12);
  for (const auto most : {whole, whole / 2, whole / 5, whole / 12, whole / 30}) {
    for (const auto& part : parts_of(most)) CHECK(part.terms == BackwardPart::Terms::all);
  }
  CHECK(parts_of(1).size() == 6U * 32 * 1024 / 128);
}

TEST_CASE("no backward takes more than a gibibyte, nor many plans, however long its sequences") {
  using Shape = std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>;
  const Shape shapes[] = {{1, 32, 8, 128}, {4, 8, 1, 128},   {1, 64, 1, 128}, {2, 12, 12, 64},
                          {1, 1, 1, 128},  {1, 16, 16, 256}, {1, 6, 2, 40}};
  for (const auto& [batch, heads, kv_heads, head_dim] : shapes) {
    for (const std::int64_t seq : {1000, 8192, 32768, 131072}) {
      for (const auto bits : {AttentionBits::fastest, AttentionBits::repeatable}) {
        INFO(batch << " x " << seq << ", heads " << heads << "/" << kv_heads << " of " << head_dim
                   << (bits == AttentionBits::fastest ? ", fastest" : ", repeatable"));
        const auto extents = extents_of(batch, seq, heads, kv_heads, head_dim);
        const BackwardParts parts(extents, bits, gibibyte);
        require_cover(extents, parts);
        CHECK(parts.workspace_bytes() <= gibibyte);
        std::set<std::tuple<std::int64_t, std::int64_t, std::int64_t, std::int64_t>> plans;
        for (const auto& part : parts.list()) {
          CHECK(backward_bytes(extents, part, bits).total() <= parts.workspace_bytes());
          plans.emplace(part.sequences, part.kv_heads * part.of_group, part.queries, part.keys);
        }
        CHECK(plans.size() <= 72);
      }
    }
  }
}

TEST_CASE("the ordinary backward takes so much a token, however many there are") {
  for (const std::int64_t seq : {1024, 8192, 32768, 131072}) {
    const auto extents = extents_of(1, seq, 8, 8, 128);
    const BackwardParts parts(extents, AttentionBits::fastest, 1024 * gibibyte);
    REQUIRE(parts.list().size() == 1);
    // dq in fp32, for kernels of Ampere twice.
    const auto gradient = static_cast<double>(4 * 8 * seq * 128);
    CHECK(static_cast<double>(parts.workspace_bytes()) < 2.05 * gradient);
  }
}
