// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "device/cuda/attention/cudnn/attention.hpp"
#include "support/fake_cudnn/fake_cudnn.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::cudnn;
using namespace trireme::device::test;
using trireme::testing::CudnnEngine;
using trireme::testing::FakeCudnn;

namespace {

struct Heads {
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};
/// Multi-head, grouped, multi-query; one token, sequences that fill no tile; odd and wide heads.
constexpr std::array<Heads, 7> shapes{{{1, 1, 1, 1, 64},
                                       {2, 13, 3, 3, 64},
                                       {2, 9, 4, 2, 128},
                                       {1, 17, 6, 1, 64},
                                       {3, 5, 2, 2, 128},
                                       {1, 7, 2, 1, 40},
                                       {1, 6, 2, 2, 256}}};
constexpr std::array both_bits{AttentionBits::fastest, AttentionBits::repeatable};
constexpr int hopper = 90;

/// q, k and v are columns of one matrix, as the model's are, and so are their gradients.
struct Case {
  TestTensor qkv;
  TestTensor out;
  TestTensor lse;
  TestTensor d_out;
  TestTensor d_qkv;
  AttentionBackward call;

  Case(const Heads& s, bool causal)
      : qkv(DType::bf16, {s.batch, s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}),
        out(DType::bf16, {s.batch, s.seq, s.heads, s.head_dim}),
        lse(DType::f32, {s.batch, s.heads, s.seq}),
        d_out(DType::bf16, {s.batch, s.seq, s.heads, s.head_dim}),
        d_qkv(DType::bf16, {s.batch, s.seq, (s.heads + 2 * s.kv_heads) * s.head_dim}) {
    qkv.randomise(1);
    d_out.randomise(2);
    const auto part = [&](const Tensor& whole, std::int64_t first, std::int64_t count) {
      return whole.slice(2, first * s.head_dim, count * s.head_dim).split(2, s.head_dim);
    };
    auto& forward = call.forward;
    forward.q = part(qkv, 0, s.heads);
    forward.k = part(qkv, s.heads, s.kv_heads);
    forward.v = part(qkv, s.heads + s.kv_heads, s.kv_heads);
    forward.out = out;
    forward.lse = lse;
    // Not the usual one over a root: it must come from the call.
    forward.scale = 0.07F;
    forward.causal = causal;
    call.d_out = d_out;
    call.dq = part(d_qkv, 0, s.heads);
    call.dk = part(d_qkv, s.heads, s.kv_heads);
    call.dv = part(d_qkv, s.heads + s.kv_heads, s.kv_heads);
  }
};

/// Host memory that grows, not numbers where it is asked for, poisoned behind that.
class Scratch {
 public:
  void* operator()(std::size_t bytes) {
    largest_ = std::max(largest_, bytes);
    if (memory_.size() < bytes + guard) memory_.resize(bytes + guard);
    const auto end = memory_.begin() + static_cast<std::ptrdiff_t>(bytes);
    std::fill(memory_.begin(), end, std::byte{0xFF});
    std::fill(end, memory_.end(), poison);
    end_ = bytes;
    return memory_.data();
  }
  bool untouched_behind() const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(end_), memory_.end(),
                       [](std::byte byte) { return byte == poison; });
  }
  std::size_t take_largest() { return std::exchange(largest_, 0); }

 private:
  static constexpr std::size_t guard = 1024;
  static constexpr std::byte poison{0x5A};
  std::vector<std::byte> memory_;
  std::size_t end_ = 0;
  std::size_t largest_ = 0;
};

constexpr std::size_t no_bound = std::size_t{1} << 40;

FusedAttention fused_over(const FakeCudnn& fake, Scratch& scratch,
                          AttentionBits bits = AttentionBits::repeatable,
                          std::size_t most_workspace_bytes = no_bound) {
  static int stream = 0;
  static const auto kernels = make_reference_kernels();
  return {fake.api(), {&stream, std::ref(scratch), *kernels}, {bits, hopper, most_workspace_bytes}};
}

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
  Scratch scratch;
  const auto reference = make_reference_kernels();
  for (const auto bits : both_bits) {
    auto fused = fused_over(fake, scratch, bits);
    for (const auto& shape : shapes) {
      for (const bool causal : {true, false}) {
        INFO("batch " << shape.batch << ", seq " << shape.seq << ", heads " << shape.heads << "/"
                      << shape.kv_heads << " of " << shape.head_dim << ", causal " << causal
                      << (bits == AttentionBits::fastest ? ", fastest" : ", repeatable"));
        Case found(shape, causal);
        Case wanted(shape, causal);
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
  Scratch scratch;
  const auto reference = make_reference_kernels();
  const Heads shape{1, 128, 2, 1, 8};
  Case wanted(shape, true);
  reference->issue(wanted.call.forward);
  reference->issue(wanted.call);
  for (const std::size_t version : {90000U, 90501U, 90600U, 91900U}) {
    CAPTURE(version);
    fake.version = version;
    auto fused = fused_over(fake, scratch, AttentionBits::fastest);
    Case found(shape, true);
    REQUIRE(fused.forward(found.call.forward));
    REQUIRE(fused.backward(found.call));
    require_bf16_close(found.d_qkv, wanted.d_qkv);
  }
}

TEST_CASE("a run asks for the workspace of its plan, to the byte, in both modes") {
  FakeCudnn fake;
  Scratch scratch;
  std::size_t last = 0;
  for (const auto bits : both_bits) {
    auto fused = fused_over(fake, scratch, bits, FusedAttention::Settings{}.most_workspace_bytes);
    Case each({2, 48, 4, 2, 8}, true);
    REQUIRE(fused.forward(each.call.forward));
    REQUIRE(fused.backward(each.call));
    const AttentionSize size{.batch = 2, .seq = 48, .heads = 4, .kv_heads = 2, .head_dim = 8};
    const auto planned = planned_library_memory(size, {.bits = bits}).back();
    CHECK(planned.library == "cuDNN");
    CHECK(planned.bytes == scratch.take_largest());
    CHECK(planned.bytes != std::exchange(last, planned.bytes));
  }
}

TEST_CASE("either implementation does the backward of the other's forward") {
  FakeCudnn fake;
  Scratch scratch;
  auto fused = fused_over(fake, scratch);
  const auto reference = make_reference_kernels();
  Case mixed(shapes[2], true);
  Case wanted(shapes[2], true);
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

TEST_CASE("one plan serves every call of a shape") {
  FakeCudnn fake;
  Scratch scratch;
  auto fused = fused_over(fake, scratch);
  Case first(shapes[1], true);
  Case second(shapes[1], true);
  for (auto* each : {&first, &second, &first}) {
    REQUIRE(fused.forward(each->call.forward));
    REQUIRE(fused.backward(each->call));
  }
  CHECK(fake.plans_made == 2);
  CHECK(fake.runs == 6);
  Case open(shapes[1], false);
  REQUIRE(fused.forward(open.call.forward));
  CHECK(fake.plans_made == 3);
}

TEST_CASE("engines that do not repeat or take too much are passed over") {
  FakeCudnn fake;
  Scratch scratch;
  auto fused = fused_over(fake, scratch);
  Case small(shapes[1], true);
  SECTION("one is left") {
    fake.engines = {{.repeats = false, .can_be_made_ready = true, .workspace_bytes = 0},
                    {.repeats = true, .can_be_made_ready = false, .workspace_bytes = 0},
                    {.repeats = true, .can_be_made_ready = true, .workspace_bytes = 1U << 30U},
                    {}};
    REQUIRE(fused.forward(small.call.forward));
    REQUIRE(fused.backward(small.call));
    CHECK(fake.runs == 2);
  }
  SECTION("none is left") {
    fake.engines = {{.repeats = false, .can_be_made_ready = true, .workspace_bytes = 0}};
    CHECK_FALSE(fused.forward(small.call.forward));
    CHECK_FALSE(fused.backward(small.call));
    fake.engines = {{}};
    // A decision is kept: the same call gets the same implementation for the whole run.
    CHECK_FALSE(fused.forward(small.call.forward));
    CHECK(fake.runs == 0);
  }
}

TEST_CASE("a backward whose bits may vary takes engines whose bits do") {
  FakeCudnn fake;
  Scratch scratch;
  Case small(shapes[1], true);
  auto fused = fused_over(fake, scratch, AttentionBits::fastest);
  REQUIRE(fused.forward(small.call.forward));
  fake.engines = {{.repeats = false, .can_be_made_ready = true, .workspace_bytes = 0}};
  CHECK(fused.backward(small.call));
}

TEST_CASE("calls that are not for cuDNN are left to others") {
  const auto reason = [](const auto& change, const Support& support = supposed_support) {
    Case each(shapes[1], true);
    change(each.call.forward);
    const auto found = reason_against(each.call, support);
    return found ? found->why : "";
  };
  CHECK(reason([](Attention&) {}).empty());
  CHECK(reason([](Attention& a) { a.lse = {}; }) == "it keeps no lse");
  CHECK(reason([](Attention& a) { a.dropout.rate = 0.1F; }) ==
        "it has dropout, whose masks are not cuDNN's");
  CHECK(reason([](Attention& a) { a.q = a.q.slice(1, 0, 1); }) == "it has other keys than queries");
  CHECK(reason([](Attention& a) { a.q = a.q.slice(3, 0, 36); }) ==
        "its heads are 36 wide, and it takes multiples of 8 up to 256");
  CHECK(reason([](Attention& a) { a.k = a.k.moved_to(a.k.bf16() + 1); }) ==
        "its rows do not lie at multiples of 16 bytes");
  TestTensor floats(DType::f32, {2, 13, 3, 64});
  CHECK(reason([&](Attention& a) { a.q = floats; }) == "it would compute in f32");
  CHECK_THAT(reason([](Attention&) {}, {91500, hopper}),
             Catch::Contains("13 keys are not a multiple of 128"));
  Case unaligned(shapes[1], true);
  unaligned.call.dv = unaligned.call.dv.moved_to(unaligned.call.dv.bf16() + 1);
  CHECK(reason_against(unaligned.call, supposed_support)->why ==
        "its gradients do not lie at multiples of 16 bytes");
  // A forward is not touched by what is wrong with backwards.
  Case half_a_tile({1, 64, 1, 1, 8}, false);
  CHECK_FALSE(reason_against(half_a_tile.call.forward, {91500, hopper}));
  CHECK_THAT(reason_against(half_a_tile.call, supposed_support)->why,
             Catch::Contains("may give NaN"));
}

TEST_CASE("parts of a backward give what the whole gives") {
  FakeCudnn fake;
  Scratch scratch;
  auto fused = fused_over(fake, scratch);
  Case whole({3, 7, 4, 2, 64}, true);
  Case parts({3, 7, 4, 2, 64}, true);
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
  Scratch scratch;
  const auto reference = make_reference_kernels();
  for (const auto& shape : {Heads{2, 150, 2, 1, 8}, Heads{1, 260, 1, 1, 16}}) {
    for (const bool causal : {true, false}) {
      Case whole(shape, causal);
      reference->issue(whole.call.forward);
      reference->issue(whole.call);
      for (const auto bits : both_bits) {
        INFO("heads " << shape.heads << "/" << shape.kv_heads << ", causal " << causal
                      << (bits == AttentionBits::fastest ? ", fastest" : ", repeatable"));
        auto fused = fused_over(fake, scratch, bits, 1);
        Case blocks(shape, causal);
        Case again(shape, causal);
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

TEST_CASE("the stand-in for cuDNN refuses misuse") {
  FakeCudnn fake;
  const auto& api = fake.api();
  Descriptor tensor(api, Kind::tensor);
  CHECK_THROWS_AS(tensor.set(Attribute::tensor_id, true), std::logic_error);
  CHECK_THROWS_AS(tensor.set(Attribute::matmul_precision, DataType::f32), std::logic_error);
  CHECK_THROWS_AS(tensor.finalize(), std::logic_error);
  tensor.set(Attribute::tensor_id, std::int64_t{1});
  CHECK_THROWS_AS(tensor.set(Attribute::tensor_id, std::int64_t{2}), std::logic_error);
  Descriptor reshape(api, Kind::operation_reshape);
  CHECK_THROWS_AS(reshape.set(Attribute::operation_reshape_x, tensor), std::logic_error);
  CHECK_THROWS_AS(tensor.get_int64(Attribute::tensor_id), std::logic_error);
}

TEST_CASE("nothing of cuDNN's is left behind") {
  FakeCudnn fake;
  {
    Scratch scratch;
    auto fused = fused_over(fake, scratch);
    Case each(shapes[1], true);
    REQUIRE(fused.forward(each.call.forward));
    CHECK(fake.alive() > 0);
  }
  CHECK(fake.alive() == 0);
}
