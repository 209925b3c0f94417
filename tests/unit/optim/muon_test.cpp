// SPDX-License-Identifier: Apache-2.0
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/optimizer.hpp"

#include "unit/device/test_tensor.hpp"
#include "unit/optim/plain_newton_schulz.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::device;
using namespace trireme::testing;
using device::test::TestTensor;
using optim::Content;
using optim::MatrixScale;
using optim::RuleKind;

namespace {

constexpr std::int64_t rows = 12;
constexpr std::int64_t columns = 7;
constexpr std::int64_t size = rows * columns;
/// Elements that AdamW updates, in front of two matrices.
constexpr std::int64_t others = 20;

std::vector<optim::Segment> segments() {
  optim::Segment vector{.flat = {0, others}, .decays = false};
  optim::Segment first{.flat = {others, others + size}};
  first.content = Content::matrix;
  first.shape = {rows, columns};
  auto second = first;
  second.flat = {others + size, others + 2 * size};
  second.state_begin = size;
  return {vector, first, second};
}

/// Published update of one matrix, in doubles.
struct PlainMuon {
  Plain weights;
  Plain momentum{rows, columns, std::vector<double>(static_cast<std::size_t>(size))};

  void update(const Plain& gradient, double rate, double decay, double factor, bool nesterov) {
    momentum = combined(0.9, momentum, 0.1, gradient);
    const auto ahead = nesterov ? combined(0.1, gradient, 0.9, momentum) : momentum;
    const std::vector<PlainStep> steps(5, {3.4445, -4.7750, 2.0315});
    weights = combined(1 - rate * decay, weights, -rate * factor, newton_schulz(ahead, steps));
  }
};

Plain plain_of(const TestTensor& flat, int matrix) {
  const auto values = flat.values();
  const auto begin = values.begin() + others + matrix * size;
  return {static_cast<std::size_t>(rows), static_cast<std::size_t>(columns), {begin, begin + size}};
}

optim::Rule rule_of(MatrixScale scale, bool nesterov) {
  optim::Rule rule;
  rule.kind = RuleKind::muon;
  rule.weight_decay = 0.25F;
  rule.muon.momentum = 0.9F;
  rule.muon.step = nesterov ? MeanMomentum::Step::nesterov : MeanMomentum::Step::plain;
  rule.muon.scale = scale;
  rule.adamw_rate = 0.5;
  return rule;
}

}  // namespace

TEST_CASE("Muon follows its published rule over several steps, and AdamW updates the others") {
  struct Case {
    MatrixScale scale;
    bool nesterov;
    double factor;
  };
  for (const auto& [scale, nesterov, factor] :
       {Case{MatrixScale::original, true, std::sqrt(12.0 / 7.0)},
        Case{MatrixScale::match_rms_adamw, false, 0.2 * std::sqrt(12.0)},
        Case{MatrixScale::unit_rms_norm, true, std::sqrt(12.0 / 7.0)}}) {
    for (const bool reference : {true, false}) {
      const auto kernels = reference ? make_reference_kernels() : make_cpu_kernels(2);
      TestTensor parameters(DType::f32, {others + 2 * size});
      TestTensor gradients(DType::f32, {others + 2 * size});
      TestTensor elements(DType::f32, {others});
      parameters.randomise(1);
      const auto initial = parameters.values();
      elements.set({initial.begin(), initial.begin() + others});
      auto arena = Arena::host(Purpose::optimizer, std::size_t{1} << 16);
      auto workspace = Arena::host(Purpose::workspace, std::size_t{1} << 16);
      const auto rule = rule_of(scale, nesterov);
      optim::Optimizer optimizer(rule, segments(), {others, 2 * size}, parameters, arena);
      auto alone = rule;
      alone.kind = RuleKind::adamw;
      optim::Optimizer adamw(alone, {segments().front()}, {others, 0}, elements, arena);
      std::vector<PlainMuon> plain{{plain_of(parameters, 0)}, {plain_of(parameters, 1)}};
      for (std::int64_t step = 1; step <= 3; ++step) {
        gradients.randomise(static_cast<std::uint64_t>(10 + step));
        optimizer.update(*kernels, workspace, gradients, 0.1F, 0.5F, step);
        adamw.update(*kernels, workspace, gradients, 0.05F, 0.5F, step);
        for (int matrix = 0; matrix < 2; ++matrix) {
          const auto gradient = plain_of(gradients, matrix);
          auto& own = plain[static_cast<std::size_t>(matrix)];
          own.update(combined(0.5, gradient, 0, gradient), 0.1, 0.25, factor, nesterov);
          const auto ours = plain_of(parameters, matrix).values;
          CHECK(device::test::relative_error(
                    {ours.begin(), ours.end()},
                    {own.weights.values.begin(), own.weights.values.end()}) < 1e-5);
        }
      }
      const auto all = parameters.values();
      CHECK(std::vector<float>(all.begin(), all.begin() + others) == elements.values());
      CHECK(workspace.used_bytes() == 0);
    }
  }
}

TEST_CASE("blocks of rows are updated as matrices of their own") {
  const auto kernels = make_cpu_kernels(1);
  const auto in_blocks = [](std::int64_t blocks) {
    auto all = segments();
    for (auto& segment : all) {
      if (segment.content == Content::matrix) segment.blocks = blocks;
    }
    return all;
  };
  auto apart = segments();
  apart.resize(1);
  for (const auto& whole : segments()) {
    for (std::int64_t row = 0; row < rows && whole.content == Content::matrix; row += 4) {
      auto block = whole;
      block.shape = {4, columns};
      block.flat.begin += row * columns;
      block.flat.end = block.flat.begin + 4 * columns;
      block.state_begin += row * columns;
      apart.push_back(block);
    }
  }
  const auto updated = [&](const std::vector<optim::Segment>& all) {
    TestTensor parameters(DType::f32, {others + 2 * size});
    TestTensor gradients(DType::f32, {others + 2 * size});
    parameters.randomise(1);
    auto arena = Arena::host(Purpose::optimizer, std::size_t{1} << 16);
    auto workspace = Arena::host(Purpose::workspace, std::size_t{1} << 16);
    // The scale without the shape of the matrix in it.
    optim::Optimizer optimizer(rule_of(MatrixScale::match_rms_adamw, true), all, {others, 2 * size},
                               parameters, arena);
    for (std::int64_t step = 1; step <= 2; ++step) {
      gradients.randomise(static_cast<std::uint64_t>(10 + step));
      optimizer.update(*kernels, workspace, gradients, 0.1F, 1.0F, step);
    }
    return parameters.values();
  };
  CHECK(updated(in_blocks(3)) == updated(apart));
  CHECK(updated(in_blocks(3)) != updated(segments()));
}

TEST_CASE("Muon keeps four bytes of each matrix element, AdamW eight of the others") {
  auto arena = Arena::measuring(Purpose::optimizer);
  auto parameters = Arena::measuring(Purpose::parameters);
  const auto flat = parameters.allocate(DType::f32, {others + 2 * size});
  const optim::Optimizer optimizer(rule_of(MatrixScale::original, true), segments(),
                                   {others, 2 * size}, flat, arena);
  REQUIRE(optimizer.state().all().size() == 3);
  CHECK(optimizer.state().all()[0].values.element_count() == others);
  CHECK(optimizer.state().all()[1].values.element_count() == others);
  CHECK(optimizer.state().all()[2].name == "muon.momentum");
  CHECK(optimizer.state().all()[2].values.element_count() == 2 * size);
  const auto of_matrix = optimizer.state().of(segments()[2]);
  REQUIRE(of_matrix.size() == 1);
  CHECK(of_matrix[0].values.element_count() == size);
}

TEST_CASE("bf16 parameters of a matrix are its rounded masters") {
  const auto kernels = make_cpu_kernels(1);
  TestTensor parameters(DType::bf16, {others + 2 * size});
  TestTensor gradients(DType::f32, {others + 2 * size});
  parameters.randomise(1);
  gradients.randomise(2);
  auto arena = Arena::host(Purpose::optimizer, std::size_t{1} << 16);
  auto workspace = Arena::host(Purpose::workspace, std::size_t{1} << 16);
  optim::Optimizer optimizer(rule_of(MatrixScale::original, true), segments(), {others, 2 * size},
                             parameters, arena);
  optimizer.update(*kernels, workspace, gradients, 0.1F, 1.0F, 1);
  const auto values = parameters.values();
  for (const auto& segment : optimizer.state().segments()) {
    const auto master = optimizer.state().master(segment);
    for (std::int64_t i = 0; i < segment.flat.size(); ++i) {
      const float number = master.f32()[i];
      REQUIRE(values[static_cast<std::size_t>(segment.flat.begin + i)] ==
              to_float(to_bf16(number)));
      REQUIRE(number != 0.0F);
    }
  }
}
