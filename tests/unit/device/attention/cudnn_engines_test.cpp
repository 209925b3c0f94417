// SPDX-License-Identifier: Apache-2.0
// Which engines of cuDNN are taken for which calls, and what is asked of them.
#include "unit/device/attention/cudnn_call.hpp"

#include <catch2/catch.hpp>

#include <stdexcept>
#include <utility>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::cudnn;
using namespace trireme::device::test;
using trireme::testing::FakeCudnn;

TEST_CASE("a run asks for the workspace of its plan, to the byte, in both modes") {
  FakeCudnn fake;
  AttentionScratch scratch;
  std::size_t last = 0;
  for (const auto bits : both_bits) {
    auto fused = fused_over(fake, scratch, bits, FusedAttention::Settings{}.most_workspace_bytes);
    AttentionCall each({2, 48, 4, 2, 8}, true);
    REQUIRE(fused.forward(each.call.forward));
    REQUIRE(fused.backward(each.call));
    const AttentionSize size{.batch = 2, .seq = 48, .heads = 4, .kv_heads = 2, .head_dim = 8};
    const auto planned = planned_library_memory(size, {.bits = bits}).back();
    CHECK(planned.library == "cuDNN");
    CHECK(planned.bytes == scratch.take_largest());
    CHECK(planned.bytes != std::exchange(last, planned.bytes));
  }
}

TEST_CASE("one plan serves every call of a shape") {
  FakeCudnn fake;
  AttentionScratch scratch;
  auto fused = fused_over(fake, scratch);
  AttentionCall first(shapes[1], true);
  AttentionCall second(shapes[1], true);
  for (auto* each : {&first, &second, &first}) {
    REQUIRE(fused.forward(each->call.forward));
    REQUIRE(fused.backward(each->call));
  }
  CHECK(fake.plans_made == 2);
  CHECK(fake.runs == 6);
  AttentionCall open(shapes[1], false);
  REQUIRE(fused.forward(open.call.forward));
  CHECK(fake.plans_made == 3);
}

TEST_CASE("engines that do not repeat or take too much are passed over") {
  FakeCudnn fake;
  AttentionScratch scratch;
  auto fused = fused_over(fake, scratch);
  AttentionCall small(shapes[1], true);
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
  AttentionScratch scratch;
  AttentionCall small(shapes[1], true);
  auto fused = fused_over(fake, scratch, AttentionBits::fastest);
  REQUIRE(fused.forward(small.call.forward));
  fake.engines = {{.repeats = false, .can_be_made_ready = true, .workspace_bytes = 0}};
  CHECK(fused.backward(small.call));
}

TEST_CASE("calls that are not for cuDNN are left to others") {
  const auto reason = [](const auto& change, const Support& support = supposed_support) {
    AttentionCall each(shapes[1], true);
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
  AttentionCall unaligned(shapes[1], true);
  unaligned.call.dv = unaligned.call.dv.moved_to(unaligned.call.dv.bf16() + 1);
  CHECK(reason_against(unaligned.call, supposed_support)->why ==
        "its gradients do not lie at multiples of 16 bytes");
  // A forward is not touched by what is wrong with backwards.
  AttentionCall half_a_tile({1, 64, 1, 1, 8}, false);
  CHECK_FALSE(reason_against(half_a_tile.call.forward, {91500, hopper}));
  CHECK_THAT(reason_against(half_a_tile.call, supposed_support)->why,
             Catch::Contains("may give NaN"));
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
    AttentionScratch scratch;
    auto fused = fused_over(fake, scratch);
    AttentionCall each(shapes[1], true);
    REQUIRE(fused.forward(each.call.forward));
    CHECK(fake.alive() > 0);
  }
  CHECK(fake.alive() == 0);
}
