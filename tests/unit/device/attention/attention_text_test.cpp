// SPDX-License-Identifier: Apache-2.0
// The words of a run and its plan on attention on GPUs, and heads that no kernel takes.
#include "device/attention_text.hpp"

#include "trireme/device/attention_choice.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::device;
using Catch::Contains;

namespace {

constexpr AttentionSize usual{.batch = 2, .seq = 1024, .heads = 8, .kv_heads = 2, .head_dim = 64};
using Kind = AttentionText::Kind;

AttentionSize with_head(std::int64_t head_dim) {
  auto size = usual;
  size.head_dim = head_dim;
  return size;
}

}  // namespace

TEST_CASE("a plan says by what attention is computed, and whether its bits repeat") {
  const auto fastest = planned_attention(usual, {});
  CHECK(fastest.kind == Kind::as_wished);
  CHECK_THAT(fastest.sentence,
             Contains("attention by cuDNN") && Contains("numerics.deterministic = true"));
  const auto repeatable = planned_attention(usual, {.bits = AttentionBits::repeatable});
  CHECK_THAT(repeatable.sentence, Contains("the same bits in each run"));
  const auto own = planned_attention(usual, {.by = AttentionBy::own});
  CHECK(own.kind == Kind::as_wished);
  CHECK_THAT(own.sentence, Contains("own kernels") && Contains("numerics.attention = own"));
}

TEST_CASE("what keeps attention from cuDNN is named, with its price and a remedy") {
  auto dropped = usual;
  dropped.dropout = true;
  auto floats = usual;
  floats.dtype = DType::f32;
  const auto slower = [](const AttentionSize& size, const std::string& why,
                         const std::string& remedy) {
    const auto text = planned_attention(size, {});
    CHECK(text.kind == Kind::slower);
    CHECK_THAT(text.sentence, Contains("own kernels and not by cuDNN") && Contains(why) &&
                                  Contains("several times slower") && Contains(remedy));
  };
  slower(dropped, "it has dropout", "set model.dropout = 0");
  auto packed = usual;
  packed.documents = true;
  slower(packed, "documents see themselves alone", "set train.document_mask = false");
  slower(floats, "it would compute in f32", "set numerics.precision = bf16");
  slower(with_head(36), "its heads are 36 wide", "set model.head_dim = 32 or 40");
  slower(with_head(3), "its heads are 3 wide", "set model.head_dim = 8");
}

TEST_CASE("what an installed cuDNN lacks is told by the rule that decides each call") {
  const auto reason = [](const AttentionSize& size, std::size_t version, int capability) {
    const auto found = cudnn::reason_against(size, {version, capability});
    return found ? found->why + "; " + found->remedy : "";
  };
  CHECK(reason(usual, 91900, 90).empty());
  CHECK(reason(usual, 90000, 80).empty());
  CHECK_THAT(reason(usual, 91001, 90), Contains("9.10.1") && Contains("install cuDNN 9.10.2"));
  auto odd = usual;
  odd.seq = 1000;
  CHECK_THAT(reason(odd, 91500, 90),
             Contains("1000 keys") && Contains("set train.sequence_length = 1024"));
  CHECK(reason(odd, 91600, 90).empty());
  CHECK(reason(with_head(256), 91900, 90).empty());
  CHECK_THAT(reason(with_head(256), 91900, 80), Contains("multiples of 8 up to 128"));
  CHECK_THAT(reason(with_head(256), 90400, 90), Contains("set model.head_dim = 128"));
}

TEST_CASE("without cuDNN a run says that it is missing, and what that costs") {
  const auto text = text_of_attention({}, "", cudnn::Reason{"there is no libcudnn", "install it"});
  CHECK(text.kind == Kind::slower);
  CHECK_THAT(text.sentence, Contains("own kernels (there is no libcudnn)") &&
                                Contains("several times slower; install it"));
}

TEST_CASE("heads that no kernel of GPUs takes are refused with the nearest that one does") {
  for (const std::int64_t head_dim : {1, 36, 128, 136, 192, 256}) {
    CHECK(check_attention(with_head(head_dim), {}).ok());
  }
  const auto refusal = [](const AttentionSize& size, const AttentionChoice& choice) {
    const auto status = check_attention(size, choice);
    REQUIRE_FALSE(status.ok());
    CHECK(status.failure().code == base::ExitCode::usage);
    return status.failure().text;
  };
  CHECK_THAT(refusal(with_head(132), {}), Contains("model.head_dim = 132") &&
                                              Contains("multiples of 8 up to 256") &&
                                              Contains("set model.head_dim = 128 or 136"));
  CHECK_THAT(refusal(with_head(320), {}), Contains("set model.head_dim = 256"));
  CHECK_THAT(refusal(with_head(256), {.by = AttentionBy::own}),
             Contains("numerics.attention = own") && Contains("set model.head_dim = 128"));
  auto dropped = with_head(256);
  dropped.dropout = true;
  CHECK_THAT(refusal(dropped, {}), Contains("set model.dropout = 0"));
  auto packed = with_head(256);
  packed.documents = true;
  CHECK_THAT(refusal(packed, {}), Contains("set train.document_mask = false"));
  auto floats = with_head(256);
  floats.dtype = DType::f32;
  CHECK_THAT(refusal(floats, {}), Contains("numerics.precision = bf16"));
}
