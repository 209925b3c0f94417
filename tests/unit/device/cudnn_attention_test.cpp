#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "device/cudnn/attention.hpp"
#include "support/fake_cudnn/fake_cudnn.hpp"
#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cmath>
#include <stdexcept>

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
/// Multi-head, grouped, multi-query; one token, sequences that fill no tile.
constexpr std::array<Heads, 5> shapes{
    {{1, 1, 1, 1, 64}, {2, 13, 3, 3, 64}, {2, 9, 4, 2, 128}, {1, 17, 6, 1, 64}, {3, 5, 2, 2, 128}}};

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

/// Host memory that grows, poisoned behind what was asked for.
class Scratch {
 public:
  void* operator()(std::size_t bytes) {
    largest_ = std::max(largest_, bytes);
    if (memory_.size() < bytes + guard) memory_.resize(bytes + guard);
    std::fill(memory_.begin() + static_cast<std::ptrdiff_t>(bytes), memory_.end(), poison);
    end_ = bytes;
    return memory_.data();
  }
  bool untouched_behind() const {
    return std::all_of(memory_.begin() + static_cast<std::ptrdiff_t>(end_), memory_.end(),
                       [](std::byte byte) { return byte == poison; });
  }
  std::size_t largest() const { return largest_; }

 private:
  static constexpr std::size_t guard = 1024;
  static constexpr std::byte poison{0x5A};
  std::vector<std::byte> memory_;
  std::size_t end_ = 0;
  std::size_t largest_ = 0;
};

FusedAttention fused_over(const FakeCudnn& fake, Scratch& scratch) {
  static int stream = 0;
  return {fake.api(), &stream, std::ref(scratch)};
}

void require_bf16_close(const TestTensor& found, const TestTensor& wanted) {
  CHECK(found.written_exactly());
  CHECK(relative_error(found.values(), wanted.values()) < 1e-2);
}

}  // namespace

TEST_CASE("the graphs given to cuDNN compute what the reference computes") {
  FakeCudnn fake;
  Scratch scratch;
  auto fused = fused_over(fake, scratch);
  const auto reference = make_reference_kernels();
  for (const auto& shape : shapes) {
    for (const bool causal : {true, false}) {
      INFO("batch " << shape.batch << ", seq " << shape.seq << ", heads " << shape.heads << "/"
                    << shape.kv_heads << " of " << shape.head_dim << ", causal " << causal);
      Case found(shape, causal);
      Case wanted(shape, causal);
      reference->attention_forward(wanted.call.forward);
      reference->attention_backward(wanted.call);
      REQUIRE(fused.forward(found.call.forward));
      require_bf16_close(found.out, wanted.out);
      CHECK(relative_error(found.lse.values(), wanted.lse.values()) < 1e-5);
      REQUIRE(fused.backward(found.call));
      CHECK(scratch.untouched_behind());
      require_bf16_close(found.d_qkv, wanted.d_qkv);
    }
  }
}

TEST_CASE("either implementation does the backward of the other's forward") {
  FakeCudnn fake;
  Scratch scratch;
  auto fused = fused_over(fake, scratch);
  const auto reference = make_reference_kernels();
  Case mixed(shapes[2], true);
  Case wanted(shapes[2], true);
  reference->attention_forward(wanted.call.forward);
  reference->attention_backward(wanted.call);
  REQUIRE(fused.forward(mixed.call.forward));
  reference->attention_backward(mixed.call);
  require_bf16_close(mixed.d_qkv, wanted.d_qkv);
  mixed.d_qkv.poison();
  reference->attention_forward(mixed.call.forward);
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
                    {.repeats = true,
                     .can_be_made_ready = true,
                     .workspace_bytes = FusedAttention::most_workspace_bytes},
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

TEST_CASE("calls that are not for cuDNN are left to others") {
  const auto reason = [](const auto& change) {
    Case each(shapes[1], true);
    change(each.call.forward);
    return reason_against(each.call);
  };
  CHECK(reason([](Attention&) {}).empty());
  CHECK(reason([](Attention& a) { a.lse = {}; }) == "it keeps no lse");
  CHECK(reason([](Attention& a) { a.dropout.rate = 0.1F; }) == "it has dropout");
  CHECK(reason([](Attention& a) { a.q = a.q.slice(1, 0, 1); }) == "it has other keys than queries");
  CHECK(reason([](Attention& a) { a.q = a.q.slice(3, 0, 32); }) == "its heads are 32 wide");
  CHECK(reason([](Attention& a) { a.k = a.k.moved_to(a.k.bf16() + 1); }) ==
        "its rows do not lie at multiples of 16 bytes");
  TestTensor floats(DType::f32, {2, 13, 3, 64});
  CHECK(reason([&](Attention& a) { a.q = floats; }) == "it computes in f32");
  Case unaligned(shapes[1], true);
  unaligned.call.dv = unaligned.call.dv.moved_to(unaligned.call.dv.bf16() + 1);
  CHECK(reason_against(unaligned.call) == "its gradients do not lie at multiples of 16 bytes");
}

TEST_CASE("a backward that needs much workspace is cut into sequences, then heads") {
  AttentionExtents extents;
  extents.q = extents.out = dense(6, 32, 1024, 128);
  extents.k = extents.v = dense(6, 8, 1024, 128);
  const auto whole = backward_workspace_bytes(extents);
  // The scores' gradient in bf16, dk and dv of all heads, row sums.
  CHECK(whole >= 6U * 32 * 1024 * 1024 * 2 + 2U * 6 * 32 * 1024 * 128 * 2 + 6U * 32 * 1024 * 4);
  const auto covers_once = [&](std::size_t most) {
    std::vector<int> seen(6 * 8, 0);
    for (const auto& part : FusedAttention::parts_of(extents, most)) {
      for (auto s = part.first_sequence; s < part.first_sequence + part.sequences; ++s) {
        for (auto h = part.first_kv_head; h < part.first_kv_head + part.kv_heads; ++h) {
          ++seen.at(static_cast<std::size_t>(s * 8 + h));
        }
      }
      // A part of several sequences has all heads: its lse is contiguous.
      CHECK((part.sequences == 1 || part.kv_heads == 8));
    }
    return seen == std::vector<int>(6 * 8, 1);
  };
  auto single = extents;
  for (auto* each : {&single.q, &single.k, &single.v, &single.out}) each->dims[0] = 1;
  const auto one = backward_workspace_bytes(single);
  CHECK(FusedAttention::parts_of(extents, 6 * one).size() == 1);
  CHECK(FusedAttention::parts_of(extents, 3 * one).size() == 2);
  CHECK(FusedAttention::parts_of(extents, one).size() == 6);
  // Not five and one.
  for (const auto& part : FusedAttention::parts_of(extents, 5 * one)) CHECK(part.sequences == 3);
  CHECK(FusedAttention::parts_of(extents, one - 1).size() == 12);
  for (const auto most : {whole, whole / 2, whole / 5, whole / 12, whole / 30, std::size_t{1}}) {
    CHECK(covers_once(most));
  }
  extents.q = extents.out = dense(1, 32, 16384, 128);
  extents.k = extents.v = dense(1, 8, 16384, 128);
  CHECK(FusedAttention::workspace_bytes(extents) > FusedAttention::most_workspace_bytes);
}

TEST_CASE("parts of a backward give what the whole gives") {
  FakeCudnn fake;
  Scratch scratch;
  auto fused = fused_over(fake, scratch);
  // Two gibibytes of the scores' gradient cannot be interpreted here: the parts are run one by one.
  Case whole({3, 7, 4, 2, 64}, true);
  Case parts({3, 7, 4, 2, 64}, true);
  REQUIRE(fused.forward(whole.call.forward));
  REQUIRE(fused.backward(whole.call));
  REQUIRE(fused.forward(parts.call.forward));
  const auto extents = AttentionExtents::of(parts.call.forward);
  for (const auto most : {std::size_t{1}, backward_workspace_bytes(extents) * 2 / 3}) {
    parts.d_qkv.poison();
    REQUIRE(fused.backward(parts.call, most));
    CHECK(parts.d_qkv.values() == whole.d_qkv.values());
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
