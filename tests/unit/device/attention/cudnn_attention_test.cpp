// SPDX-License-Identifier: Apache-2.0
#include "unit/device/attention/cudnn_call.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::cudnn;
using namespace trireme::device::test;
using trireme::testing::FakeCudnn;

namespace {

void require_bf16_close(const TestTensor& found, const TestTensor& wanted) {
  CHECK(found.written_exactly());
  CHECK(relative_error(found.values(), wanted.values()) < 1e-2);
}

/// Largest difference, relative to scores of 1 or more: a score may lie near 0 by chance, and its
/// error is that of its terms.
double score_error(const std::vector<float>& found, const std::vector<float>& wanted) {
  double largest = found.size() == wanted.size() ? 0 : std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < std::min(found.size(), wanted.size()); ++i) {
    const auto score = static_cast<double>(wanted[i]);
    const auto error = std::abs(static_cast<double>(found[i]) - score);
    largest = std::isnan(error) ? std::numeric_limits<double>::infinity()
                                : std::max(largest, error / std::max(1.0, std::abs(score)));
  }
  return largest;
}

}  // namespace

TEST_CASE("the graphs given to cuDNN compute what the reference computes") {
  FakeCudnn fake;
  AttentionScratch scratch;
  const auto reference = make_reference_kernels();
  for (const auto bits : both_bits) {
    auto fused = fused_over(fake, scratch, bits);
    for (const auto& shape : shapes) {
      for (const bool causal : {true, false}) {
        INFO("batch " << shape.batch << ", seq " << shape.seq << ", heads " << shape.heads << "/"
                      << shape.kv_heads << " of " << shape.head_dim << ", causal " << causal
                      << (bits == AttentionBits::fastest ? ", fastest" : ", repeatable"));
        AttentionCall found(shape, causal);
        AttentionCall wanted(shape, causal);
        reference->issue(wanted.call.forward);
        reference->issue(wanted.call);
        REQUIRE(fused.forward(found.call.forward));
        require_bf16_close(found.out, wanted.out);
        CHECK(score_error(found.lse.values(), wanted.lse.values()) < 1e-5);
        REQUIRE(fused.backward(found.call));
        CHECK(scratch.untouched_behind());
        require_bf16_close(found.d_qkv, wanted.d_qkv);
      }
    }
  }
}

TEST_CASE("what blocks add to begins at zero, whether a version sees to it or not") {
  FakeCudnn fake;
  AttentionScratch scratch;
  const auto reference = make_reference_kernels();
  const Heads shape{1, 128, 2, 1, 8};
  AttentionCall wanted(shape, true);
  reference->issue(wanted.call.forward);
  reference->issue(wanted.call);
  for (const std::size_t version : {90000U, 90501U, 90600U, 91900U}) {
    CAPTURE(version);
    fake.version = version;
    auto fused = fused_over(fake, scratch, AttentionBits::fastest);
    AttentionCall found(shape, true);
    REQUIRE(fused.forward(found.call.forward));
    REQUIRE(fused.backward(found.call));
    require_bf16_close(found.d_qkv, wanted.d_qkv);
  }
}

TEST_CASE("either implementation does the backward of the other's forward") {
  FakeCudnn fake;
  AttentionScratch scratch;
  auto fused = fused_over(fake, scratch);
  const auto reference = make_reference_kernels();
  AttentionCall mixed(shapes[2], true);
  AttentionCall wanted(shapes[2], true);
  reference->issue(wanted.call.forward);
  reference->issue(wanted.call);
  REQUIRE(fused.forward(mixed.call.forward));
  reference->issue(mixed.call);
  require_bf16_close(mixed.d_qkv, wanted.d_qkv);
  mixed.d_qkv.poison();
  reference->issue(mixed.call.forward);
  REQUIRE(fused.backward(mixed.call));
  require_bf16_close(mixed.d_qkv, wanted.d_qkv);
}

TEST_CASE("parts of a backward give what the whole gives") {
  FakeCudnn fake;
  AttentionScratch scratch;
  auto fused = fused_over(fake, scratch);
  AttentionCall whole({3, 7, 4, 2, 64}, true);
  AttentionCall parts({3, 7, 4, 2, 64}, true);
  REQUIRE(fused.forward(whole.call.forward));
  REQUIRE(fused.backward(whole.call));
  const auto all = scratch.take_largest();
  for (const auto most : {all * 2 / 3, all / 3, all / 5}) {
    CAPTURE(most);
    const auto before = fake.runs;
    auto in_parts = fused_over(fake, scratch, AttentionBits::repeatable, most);
    REQUIRE(in_parts.forward(parts.call.forward));
    parts.d_qkv.poison();
    REQUIRE(in_parts.backward(parts.call));
    CHECK(fake.runs - before > 2);
    CHECK(parts.d_qkv.values() == whole.d_qkv.values());
  }
}

TEST_CASE("blocks of queries give what the whole gives, and the same bits again") {
  FakeCudnn fake;
  AttentionScratch scratch;
  const auto reference = make_reference_kernels();
  for (const auto& shape : {Heads{2, 150, 2, 1, 8}, Heads{1, 260, 1, 1, 16}}) {
    for (const bool causal : {true, false}) {
      AttentionCall whole(shape, causal);
      reference->issue(whole.call.forward);
      reference->issue(whole.call);
      for (const auto bits : both_bits) {
        INFO("heads " << shape.heads << "/" << shape.kv_heads << ", causal " << causal
                      << (bits == AttentionBits::fastest ? ", fastest" : ", repeatable"));
        auto fused = fused_over(fake, scratch, bits, 1);
        AttentionCall blocks(shape, causal);
        AttentionCall again(shape, causal);
        for (auto* each : {&blocks, &again}) {
          REQUIRE(fused.forward(each->call.forward));
          const auto before = fake.runs;
          REQUIRE(fused.backward(each->call));
          const auto blocks_of_head = (shape.seq + 127) / 128;
          CHECK(fake.runs - before == blocks_of_head * shape.heads * shape.batch);
          CHECK(scratch.untouched_behind());
        }
        const auto extents = AttentionExtents::of(whole.call.forward);
        CHECK(scratch.take_largest() ==
              FusedAttention::workspace_bytes(extents, {bits, hopper, 1}));
        require_bf16_close(blocks.d_qkv, whole.d_qkv);
        CHECK(again.d_qkv.values() == blocks.d_qkv.values());
      }
    }
  }
}
