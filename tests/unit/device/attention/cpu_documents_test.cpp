// SPDX-License-Identifier: Apache-2.0
// The CPU's tiles begin where a document does, so that its sums come in the order that they have
// when it is by itself.
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

/// q, k, v, out, d_out, dq, dk, dv of one sequence.
class OneSequence {
 public:
  static constexpr std::int64_t heads = 2;

  OneSequence(DType dtype, std::int64_t length) {
    for (int number = 0; number < 8; ++number) {
      tensors_.emplace_back(dtype, std::initializer_list<std::int64_t>{1, length, heads, 24});
      tensors_.back().randomise(static_cast<std::uint64_t>(number));
    }
  }
  AttentionBackward tokens(std::int64_t begin, std::int64_t count, const Tensor& lse) const {
    const auto of = [&](std::size_t number) {
      return tensors_[number].view().slice(1, begin, count);
    };
    const Attention forward{
        .q = of(0), .k = of(1), .v = of(2), .out = of(3), .lse = lse, .scale = 0.2F};
    return {forward, of(4), of(5), of(6), of(7)};
  }
  std::vector<std::vector<float>> results() const {
    std::vector<std::vector<float>> all;
    for (const auto number : {3, 5, 6, 7}) {
      all.push_back(tensors_[static_cast<std::size_t>(number)].values());
    }
    return all;
  }

 private:
  std::vector<TestTensor> tensors_;
};

}  // namespace

TEST_CASE("a document of a few tokens or more has the bits that it has by itself") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  // More than a tile of keys and a part's queries, all remainders; the fewest that tiles take.
  const std::vector<std::int64_t> lengths{37, 4, 600, 64, 5, 130, 700, 17};
  std::vector<std::int32_t> firsts;
  for (const auto length : lengths) {
    const auto first = static_cast<std::int32_t>(firsts.size());
    firsts.insert(firsts.end(), static_cast<std::size_t>(length), first);
  }
  const auto total = static_cast<std::int64_t>(firsts.size());
  TestTensor first_keys(DType::i32, {1, total});
  first_keys.set_integers(firsts);
  for_each_backend([&](Kernels& kernels) {
    // Its plain loops take minutes, and have one order anyway.
    if (kernels.name() == std::string("reference")) return;
    const OneSequence apart(dtype, total);
    std::int64_t begin = 0;
    for (const auto length : lengths) {
      TestTensor lse(DType::f32, {1, OneSequence::heads, length});
      const auto call = apart.tokens(begin, length, lse);
      kernels.issue(call.forward);
      kernels.issue(call);
      begin += length;
    }
    const OneSequence packed(dtype, total);
    TestTensor lse(DType::f32, {1, OneSequence::heads, total});
    auto call = packed.tokens(0, total, lse);
    call.forward.first_keys = first_keys;
    kernels.issue(call.forward);
    kernels.issue(call);
    CHECK((packed.results() == apart.results()));
  });
}
