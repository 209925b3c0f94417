// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/gemm/operands.hpp"
#include "device/cuda/gemm/tuning_cache.hpp"

#include <catch2/catch.hpp>

#include <set>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::device::cuda;

namespace {

constexpr Algorithm one_way{1, 2, 3, 4, 5, 6, 7, 0xFEDCBA9876543210U};
constexpr Algorithm other_way{9};

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const auto at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

TuningCache filled_cache() {
  TuningCache cache("GPU A");
  cache.add("first", one_way);
  cache.add("second", other_way);
  return cache;
}

}  // namespace

TEST_CASE("the fastest candidate wins, and of candidates as fast the first") {
  const auto pick = [](std::vector<double> seconds) {
    return fastest(
        seconds.size(), [&](std::size_t candidate) { return seconds[candidate]; }, 3);
  };
  CHECK(pick({3.0, 1.0, 2.0}) == 1);
  CHECK(pick({1.01, 1.0, 1.005}) == 0);
  CHECK(pick({1.03, 1.0, 1.005}) == 1);
  CHECK(pick({5.0}) == 0);
  CHECK(pick({}) == -1);
}

TEST_CASE("candidates are timed in turns, and one slow run of one does not count") {
  std::vector<std::size_t> order;
  const auto found = fastest(
      2,
      [&](std::size_t candidate) {
        order.push_back(candidate);
        // The first candidate is the faster one, but for its first run.
        if (candidate == 0) return order.size() == 1 ? 100.0 : 1.0;
        return 2.0;
      },
      3);
  CHECK(found == 0);
  CHECK(order == std::vector<std::size_t>{0, 1, 0, 1, 0, 1});
}

TEST_CASE("a candidate that fails is out, and is not tried again") {
  int tries = 0;
  const auto failing = [&](std::size_t candidate) -> double {
    if (candidate == 0) return 5.0;
    ++tries;
    throw base::Error(base::ExitCode::topology, "no");
  };
  CHECK(fastest(2, failing, 4) == 0);
  CHECK(tries == 1);
  const auto all_fail = [](std::size_t) -> double {
    throw base::Error(base::ExitCode::topology, "no");
  };
  CHECK(fastest(3, all_fail, 2) == -1);
}

TEST_CASE("choices survive being written and read") {
  const auto text = filled_cache().text();
  TuningCache read("GPU A");
  REQUIRE(read.merge(text).ok());
  REQUIRE(read.find("first") != nullptr);
  CHECK(*read.find("first") == one_way);
  CHECK(*read.find("second") == other_way);
  CHECK(read.find("third") == nullptr);
  CHECK(read.text() == text);
}

TEST_CASE("what is chosen first stays") {
  auto cache = filled_cache();
  cache.add("first", other_way);
  CHECK(*cache.find("first") == one_way);
  TuningCache others("GPU A");
  others.add("first", other_way);
  others.add("third", other_way);
  REQUIRE(cache.merge(others.text()).ok());
  CHECK(*cache.find("first") == one_way);
  CHECK(*cache.find("third") == other_way);
}

TEST_CASE("what was just chosen gives way to what ranks agree on, what was adopted does not") {
  TuningCache cache("GPU A");
  REQUIRE(cache.adopt(std::vector<std::string>{filled_cache().text()}).ok());
  CHECK(cache.news() == TuningCache("GPU A").text());
  cache.add("third", one_way);
  TuningCache agreed("GPU A");
  agreed.add("first", other_way);
  agreed.add("third", other_way);
  CHECK(cache.news() != agreed.text());
  // A text that is no list keeps no other from being taken, and takes nothing away.
  CHECK_FALSE(cache.adopt(std::vector<std::string>{"{", agreed.text()}).ok());
  CHECK(cache.size() == 3);
  CHECK(*cache.find("first") == one_way);
  CHECK(*cache.find("third") == other_way);
  CHECK(cache.news() == TuningCache("GPU A").text());
}

TEST_CASE("choices of another GPU are passed over") {
  TuningCache cache("GPU B");
  CHECK(cache.merge(filled_cache().text()).ok());
  CHECK(cache.size() == 0);
}

TEST_CASE("damaged or foreign lists of choices are refused whole") {
  const auto good = filled_cache().text();
  const std::vector<std::string> bad{
      "",
      "{",
      "[]",
      "{\"format\": \"trireme products 1\"}",
      good.substr(0, good.size() / 2),
      replaced(good, "products 1", "products 2"),
      // A digit of an algorithm; a longer one; a name.
      replaced(good, "fedcba98", "fedcba97"),
      replaced(good, "fedcba98", "fedcba981"),
      replaced(good, "fedcba98", "fedcbaxy"),
      replaced(good, "second", "zecond"),
  };
  for (const auto& text : bad) {
    INFO(text);
    TuningCache cache("GPU A");
    CHECK_FALSE(cache.merge(text).ok());
    CHECK(cache.size() == 0);
  }
}

TEST_CASE("a layer's products have names of their own, whatever they are done with") {
  auto arena = Arena::measuring(Purpose::activations);
  const auto x = arena.allocate(DType::bf16, {128, 256});
  const auto w = arena.allocate(DType::bf16, {512, 256});
  const auto bias = arena.allocate(DType::bf16, {512});
  const auto wide = arena.allocate(DType::bf16, {128, 512});
  const auto y = arena.allocate(DType::bf16, {128, 512});
  const auto dw = arena.allocate(DType::f32, {512, 256});
  const auto d_bias = arena.allocate(DType::f32, {512});
  std::vector<GemmCall> calls;
  const auto kernels = make_gemm_collecting_kernels(calls);
  kernels->issue(LinearForward{x, w, bias, y});
  kernels->issue(LinearForward{x, w, {}, y});
  kernels->issue(LinearGeluForward{x, w, bias, wide, y});
  kernels->issue(LinearGeluForward{x, w, {}, wide, y});
  kernels->issue(LinearBackwardInput{y, w, x});
  kernels->issue(LinearBackwardGelu{x, w.slice(0, 0, 256), wide.slice(1, 0, 256), x});
  kernels->issue(LinearBackwardWeight{y, x, dw, {}});
  kernels->issue(LinearBackwardWeight{y, x, dw, d_bias});
  std::set<std::string> names;
  for (const auto& call : calls) names.insert(gemm_of(call).descriptor.text());
  CHECK(names.size() == calls.size());

  const auto gelu = gemm_of(calls[2]).descriptor;
  CHECK(gelu.epilogue == Epilogue::gelu_bias);
  CHECK(gelu.m == 512);
  CHECK(gelu.n == 128);
  CHECK(gelu.k == 256);
  CHECK(gelu.stride_aux == 512);
  CHECK(fuses(calls[2]));
  const auto plain = gemm_of(unfused(calls[2]));
  CHECK(plain.descriptor.epilogue == Epilogue::bias);
  CHECK(plain.operands.d == wide.raw());
  const auto gradient = gemm_of(calls[7]);
  CHECK(gradient.descriptor.epilogue == Epilogue::bias_gradient);
  CHECK(gradient.descriptor.accumulate);
  CHECK(gradient.operands.bias == d_bias.raw());
  CHECK(gemm_of(unfused(calls[7])).descriptor == gemm_of(calls[6]).descriptor);
}

TEST_CASE("a product of codes is timed and chosen as any other, with the scales of both") {
  auto arena = Arena::measuring(Purpose::activations);
  const Quantised x{arena.allocate(DType::e4m3, {48, 256}), arena.allocate(DType::f32, {1})};
  const Quantised w{arena.allocate(DType::e4m3, {512, 256}), arena.allocate(DType::f32, {1})};
  const auto bias = arena.allocate(DType::bf16, {512});
  const auto y = arena.allocate(DType::bf16, {48, 512});
  std::vector<GemmCall> calls;
  const auto kernels = make_gemm_collecting_kernels(calls);
  kernels->issue(LinearForwardQuantised{x, w, bias, y});
  kernels->issue(LinearForwardQuantised{x, w, {}, y});
  REQUIRE(calls.size() == 2);
  const auto gemm = gemm_of(calls[0]);
  CHECK(gemm.descriptor.m == 512);
  CHECK(gemm.descriptor.n == 48);
  CHECK(gemm.descriptor.k == 256);
  CHECK(gemm.descriptor.transpose_a);
  CHECK_FALSE(gemm.descriptor.transpose_b);
  CHECK(gemm.descriptor.in == DType::e4m3);
  CHECK(gemm.descriptor.out == DType::bf16);
  CHECK(gemm.descriptor.epilogue == Epilogue::bias);
  CHECK(gemm.operands.a == w.codes.raw());
  CHECK(gemm.operands.b == x.codes.raw());
  CHECK(gemm.operands.scale_a == w.unscale.raw());
  CHECK(gemm.operands.scale_b == x.unscale.raw());
  CHECK(gemm.operands.bias == bias.raw());
  CHECK(gemm_of(calls[1]).descriptor.text() != gemm.descriptor.text());
  CHECK(gemm_of(unfused(calls[0])).descriptor == gemm.descriptor);
  const auto plain = arena.allocate(DType::bf16, {48, 256});
  kernels->issue(LinearForward{plain, arena.allocate(DType::bf16, {512, 256}), {}, y});
  CHECK(gemm_of(calls[2]).descriptor.text() != gemm_of(calls[1]).descriptor.text());
  CHECK(gemm_of(calls[2]).operands.scale_a == nullptr);
}

TEST_CASE("epilogues are asked of the library only for what it does") {
  auto arena = Arena::measuring(Purpose::activations);
  const auto call = [&](DType dtype, std::int64_t out) {
    return GemmCall{GemmCall::Kind::gelu_forward,     arena.allocate(dtype, {4, 64}),
                    arena.allocate(dtype, {out, 64}), {},
                    arena.allocate(dtype, {4, out}),  arena.allocate(dtype, {4, out})};
  };
  CHECK(fuses(call(DType::bf16, 64)));
  CHECK_FALSE(fuses(call(DType::f32, 64)));
  CHECK_FALSE(fuses(call(DType::bf16, 60)));
}

TEST_CASE("a bias that does not begin at a multiple of 16 bytes is left to own kernels") {
  auto arena = Arena::measuring(Purpose::activations);
  const auto x = arena.allocate(DType::bf16, {4, 64});
  const auto w = arena.allocate(DType::bf16, {32, 64});
  const auto biases = arena.allocate(DType::bf16, {64});
  const auto wide = arena.allocate(DType::bf16, {4, 32});
  const auto y = arena.allocate(DType::bf16, {4, 32});
  const auto gelu = [&](std::int64_t begin) {
    return GemmCall{GemmCall::Kind::gelu_forward, x, w, biases.slice(0, begin, 32), wide, y};
  };
  CHECK(fuses(gelu(8)));
  CHECK_FALSE(fuses(gelu(4)));
  CHECK(unfused(gelu(8)).bias);
  CHECK_FALSE(unfused(gelu(4)).bias);
  // The GEMM with all, with a bias and without, and the GEMM alone.
  CHECK(epilogue_variants(gelu(8)).size() == 3);
  CHECK_FALSE(epilogue_variants(gelu(8)).back().bias);
  CHECK(epilogue_variants(gelu(4)).size() == 1);
}
