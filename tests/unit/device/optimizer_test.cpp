// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include <catch2/catch.hpp>

#include <cmath>

using namespace trireme::device;
using namespace trireme::device::test;

namespace {

struct State {
  TestTensor gradient{DType::f32, {37}};
  TestTensor master{DType::f32, {37}};
  TestTensor first{DType::f32, {37}};
  TestTensor second{DType::f32, {37}};
  TestTensor parameter{DType::bf16, {37}};

  State() {
    gradient.randomise(1);
    master.randomise(2);
    first.set(std::vector<float>(37, 0.0F));
    second.set(std::vector<float>(37, 0.0F));
  }
};

}  // namespace

TEST_CASE("AdamW follows its published rule over several steps") {
  for_each_backend([](Kernels& kernels) {
    State state;
    AdamW rule{0.1F, 0.9F, 0.99F, 1e-6F, 0.02F, 0.5F, 1};
    std::vector<double> p;
    for (const auto value : state.master.values()) p.push_back(static_cast<double>(value));
    std::vector<double> m(37);
    std::vector<double> v(37);
    for (; rule.step <= 3; ++rule.step) {
      state.gradient.randomise(static_cast<std::uint64_t>(10 + rule.step));
      kernels.issue(AdamWUpdate{rule, state.gradient, state.master, state.first, state.second,
                                state.parameter});
      const auto gradients = state.gradient.values();
      const auto t = static_cast<double>(rule.step);
      for (std::size_t i = 0; i < 37; ++i) {
        const double g = static_cast<double>(gradients[i]) * 0.5;
        m[i] = 0.9 * m[i] + 0.1 * g;
        v[i] = 0.99 * v[i] + 0.01 * g * g;
        const double unbiased_m = m[i] / (1 - std::pow(0.9, t));
        const double unbiased_v = v[i] / (1 - std::pow(0.99, t));
        p[i] -= 0.1 * (unbiased_m / (std::sqrt(unbiased_v) + 1e-6) + 0.02 * p[i]);
      }
    }
    const std::vector<float> expected(p.begin(), p.end());
    CHECK(relative_error(state.master.values(), expected) < 1e-5);
    CHECK(relative_error(state.first.values(), {m.begin(), m.end()}) < 1e-5);
    CHECK(relative_error(state.second.values(), {v.begin(), v.end()}) < 1e-5);
    for (std::int64_t i = 0; i < 37; ++i) {
      REQUIRE(state.parameter.at(i) == to_float(to_bf16(state.master.at(i))));
    }
    for (auto* run : {&state.master, &state.first, &state.second, &state.parameter}) {
      CHECK(run->written_exactly());
    }
  });
}

TEST_CASE("the first step of AdamW is the learning rate in the gradient's direction") {
  for_each_backend([](Kernels& kernels) {
    State state;
    state.gradient.set(std::vector<float>(37, -5.0F));
    state.master.set(std::vector<float>(37, 1.0F));
    kernels.issue(AdamWUpdate{{0.25F, 0.9F, 0.95F, 0.0F, 0.0F, 1.0F, 1},
                              state.gradient,
                              state.master,
                              state.first,
                              state.second,
                              state.parameter});
    for (const auto value : state.master.values()) CHECK(value == Approx(1.25));
  });
}

TEST_CASE("a gradient of zero and no history moves nothing but the decay") {
  for_each_backend([](Kernels& kernels) {
    State state;
    state.gradient.set(std::vector<float>(37, 0.0F));
    state.master.set(std::vector<float>(37, 2.0F));
    kernels.issue(AdamWUpdate{{0.5F, 0.9F, 0.95F, 1e-8F, 0.1F, 1.0F, 1},
                              state.gradient,
                              state.master,
                              state.first,
                              state.second,
                              {}});
    for (const auto value : state.master.values()) CHECK(value == Approx(1.9));
  });
}

TEST_CASE("momentum SGD follows its rule and writes the parameter in its own type") {
  for_each_backend([](Kernels& kernels) {
    State state;
    state.master.set(std::vector<float>(37, 1.0F));
    state.gradient.set(std::vector<float>(37, 2.0F));
    const Sgd rule{0.25F, 0.5F, 0.125F, 0.5F};
    kernels.issue(SgdUpdate{rule, state.gradient, state.master, state.first, state.parameter});
    CHECK(state.first.values() == std::vector<float>(37, 1.0F));
    CHECK(state.master.values() == std::vector<float>(37, 0.71875F));
    kernels.issue(SgdUpdate{rule, state.gradient, state.master, state.first, state.parameter});
    CHECK(state.first.values() == std::vector<float>(37, 1.5F));
    const float expected = 0.71875F - 0.25F * (1.5F + 0.125F * 0.71875F);
    for (const auto value : state.master.values()) CHECK(value == Approx(expected));
    for (const auto value : state.parameter.values()) {
      CHECK(value == to_float(to_bf16(state.master.at(0))));
    }
  });
}

TEST_CASE("an optimizer writes an fp32 parameter, the master itself, or none") {
  for_each_backend([](Kernels& kernels) {
    const AdamW rule{0.1F, 0.9F, 0.95F, 1e-8F, 0.1F, 1.0F, 1};
    State separate;
    TestTensor copy(DType::f32, {37});
    kernels.issue(AdamWUpdate{rule, separate.gradient, separate.master, separate.first,
                              separate.second, copy});
    CHECK(copy.values() == separate.master.values());
    State same;
    kernels.issue(
        AdamWUpdate{rule, same.gradient, same.master, same.first, same.second, same.master});
    State none;
    kernels.issue(AdamWUpdate{rule, none.gradient, none.master, none.first, none.second, {}});
    CHECK(same.master.values() == separate.master.values());
    CHECK(none.master.values() == separate.master.values());
  });
}
