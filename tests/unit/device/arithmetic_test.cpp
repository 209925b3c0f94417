// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <numeric>

using namespace trireme::device;
using namespace trireme::device::test;

TEST_CASE("fill and add on every type and stride") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(dtype, {2, 3, 19}, spread);
    TestTensor y(dtype, {2, 3, 19}, Spread::strided);
    TestTensor z(dtype, {2, 3, 19}, spread);
    kernels.issue(Fill{x, 3.0F});
    kernels.issue(Fill{y, 0.25F});
    CHECK(x.written_exactly());
    kernels.issue(Add{x, y, z});
    CHECK(z.written_exactly());
    CHECK(z.values() == std::vector<float>(114, 3.25F));
    kernels.issue(Add{z, x, z});
    CHECK(z.untouched_outside());
    CHECK(z.values() == std::vector<float>(114, 6.25F));
    kernels.issue(Add{z, z, z});
    CHECK(z.values() == std::vector<float>(114, 12.5F));
  });
}

TEST_CASE("copies go between types and strides, rounding to nearest") {
  const auto spread = GENERATE(Spread::contiguous, Spread::strided);
  for_each_backend([&](Kernels& kernels) {
    TestTensor wide(DType::f32, {3, 2, 21}, spread);
    TestTensor narrow(DType::bf16, {3, 2, 21}, Spread::strided);
    TestTensor back(DType::f32, {3, 2, 21}, Spread::strided);
    wide.randomise(1);
    kernels.issue(Copy{wide, narrow});
    kernels.issue(Copy{narrow, back});
    CHECK(narrow.written_exactly());
    CHECK(back.written_exactly());
    const auto original = wide.values();
    for (std::size_t i = 0; i < original.size(); ++i) {
      REQUIRE(back.values()[i] == to_float(to_bf16(original[i])));
    }
    kernels.issue(Copy{wide, back});
    CHECK(back.values() == original);
    TestTensor same(DType::bf16, {3, 2, 21}, spread);
    kernels.issue(Copy{narrow, same});
    CHECK(same.values() == narrow.values());
    CHECK(same.written_exactly());
  });
}

namespace {

std::uint64_t hash_of(Kernels& kernels, const Tensor& x) {
  TestTensor hash(DType::i32, {2});
  kernels.issue(HashBits{x, hash});
  const auto* words = hash.view().i32();
  return static_cast<std::uint32_t>(words[0]) |
         static_cast<std::uint64_t>(static_cast<std::uint32_t>(words[1])) << 32U;
}

}  // namespace

TEST_CASE("a hash of bits is the published mix, summed over elements") {
  for_each_backend([](Kernels& kernels) {
    TestTensor x(DType::f32, {2});
    kernels.issue(Fill{x, 0.0F});
    // SplitMix64 from seed 0 begins with these two numbers.
    CHECK(hash_of(kernels, x) == 0xE220A8397B1DCDAFULL + 0x6E789E6AA1B965F4ULL);
  });
}

TEST_CASE("a hash of bits sees one bit, the sign of zero and an exchange, and no stride") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(dtype, {37, 1009});
    TestTensor same(dtype, {37, 1009}, Spread::strided);
    x.randomise(1);
    kernels.issue(Copy{x, same});
    const auto hash = hash_of(kernels, x);
    CHECK(hash_of(kernels, same) == hash);
    const auto element = x.view().slice(0, 36, 1).slice(1, 1008, 1);
    TestTensor kept(dtype, {1, 1});
    kernels.issue(Copy{element, kept});
    kernels.issue(Fill{element, 0.0F});
    const auto with_zero = hash_of(kernels, x);
    CHECK(with_zero != hash);
    kernels.issue(Fill{element, -0.0F});
    CHECK(hash_of(kernels, x) != with_zero);
    kernels.issue(Copy{kept, element});
    CHECK(hash_of(kernels, x) == hash);
    const auto first = x.view().slice(1, 0, 1);
    const auto second = x.view().slice(1, 1, 1);
    TestTensor column(dtype, {37, 1});
    kernels.issue(Copy{first, column});
    kernels.issue(Copy{second, first});
    kernels.issue(Copy{column, second});
    CHECK(hash_of(kernels, x) != hash);
  });
}

TEST_CASE("accumulation adds either type into fp32") {
  const auto dtype = GENERATE(DType::f32, DType::bf16);
  for_each_backend([&](Kernels& kernels) {
    TestTensor x(dtype, {5, 23}, Spread::strided);
    TestTensor sum(DType::f32, {5, 23});
    x.set(std::vector<float>(115, 1.5F));
    kernels.issue(Fill{sum, 100000.0F});
    kernels.issue(Accumulate{x, sum});
    kernels.issue(Accumulate{x, sum});
    CHECK(sum.values() == std::vector<float>(115, 100003.0F));
    CHECK(sum.untouched_outside());
  });
}

TEST_CASE("the sum of squares is exact where fp32 would not be") {
  for_each_backend([](Kernels& kernels) {
    constexpr std::int64_t count = 100'003;
    TestTensor x(DType::f32, {count});
    std::vector<float> values(static_cast<std::size_t>(count), 1.0F);
    values[0] = 4096.0F;
    x.set(values);
    // 2^24 + 100002: in fp32 the ones would vanish beside the first square.
    CHECK(kernels.sum_of_squares(x) == 16777216.0 + 100002.0);
    TestTensor strided(DType::f32, {7, 11}, Spread::strided);
    strided.set(std::vector<float>(77, 2.0F));
    CHECK(kernels.sum_of_squares(strided) == 308.0);
    CHECK(kernels.sum_of_squares({}) == 0.0);
  });
}

TEST_CASE("shapes that differ are a broken contract") {
  for_each_backend([](Kernels& kernels) {
    TestTensor a(DType::f32, {2, 3});
    TestTensor b(DType::f32, {3, 2});
    CHECK_THROWS(kernels.issue(Add{a, a, b}));
    CHECK_THROWS(kernels.issue(Copy{a, b}));
    CHECK_THROWS(kernels.issue(GeluForward{a, b}));
    TestTensor half(DType::bf16, {2, 3});
    CHECK_THROWS(kernels.issue(Add{a, half, a}));
    CHECK_THROWS(kernels.issue(Accumulate{a, half}));
    CHECK_THROWS(kernels.sum_of_squares(half));
  });
}
