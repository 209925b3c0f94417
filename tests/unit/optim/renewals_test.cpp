// SPDX-License-Identifier: Apache-2.0
// Turns in which Shampoo renews roots, and SOAP eigenvectors.
#include "trireme/optim/matrix_rule.hpp"
#include "trireme/optim/optimizer.hpp"

#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>

using namespace trireme;
using namespace trireme::device;
using device::test::TestTensor;
using optim::RuleKind;

namespace {

constexpr std::int64_t side = 8;
constexpr std::int64_t elements = side * side;
constexpr std::int64_t root_every = 3;

/// Counts operations by name, and passes all on.
class OperationCounter final : public Kernels {
 public:
  const char* name() const override { return inner_->name(); }
  void compute(const Operation& operation) override {
    ++counts_[operation.name()];
    inner_->issue(operation);
  }
  double sum_of_squares(const Tensor& x) override { return inner_->sum_of_squares(x); }
  double sum(const Tensor& x) override { return inner_->sum(x); }
  void synchronize() override {}
  int take(const std::string& operation) { return std::exchange(counts_[operation], 0); }

 private:
  std::unique_ptr<Kernels> inner_ = make_cpu_kernels(1);
  std::map<std::string, int> counts_;
};

optim::Rule rule_of(RuleKind kind) {
  optim::Rule rule;
  rule.kind = kind;
  rule.factors.root_every = root_every;
  return rule;
}

/// Matrices of one shape and these turns, one behind another, and an optimizer of them.
class Run {
 public:
  Run(RuleKind kind, const std::vector<std::int64_t>& turns)
      : weights_(DType::f32, {std::ssize(turns) * elements}),
        gradient_(DType::f32, {std::ssize(turns) * elements}),
        turns_(turns) {
    weights_.set(std::vector<float>(turns.size() * elements, 0.5F));
    std::int64_t of_state = 0;
    for (const auto& state :
         optim::make_matrix_rule(rule_of(kind), DType::f32)->owner_states({side, side})) {
      of_state += state.shape.rows * state.shape.columns;
    }
    std::vector<optim::Segment> segments;
    for (std::size_t at = 0; at < turns.size(); ++at) {
      const auto begin = static_cast<std::int64_t>(at) * elements;
      auto& segment = segments.emplace_back();
      segment.flat = {begin, begin + elements};
      segment.state_begin = begin;
      segment.content = optim::Content::matrix;
      segment.shape = {side, side};
      segment.renewal_turn = turns[at];
      segment.owner_state_begin = static_cast<std::int64_t>(at) * of_state;
    }
    const auto count = std::ssize(turns);
    optimizer_.emplace(rule_of(kind), segments,
                       optim::StateSizes{0, count * elements, count * of_state}, weights_, arena_);
  }

  /// Gradients of a matrix depend on its turn and the step alone.
  void step(Kernels& kernels, std::int64_t step) {
    std::vector<float> values;
    for (const auto turn : turns_) {
      TestTensor part(DType::f32, {elements});
      part.randomise(static_cast<unsigned>(100 * turn + step));
      const auto own = part.values();
      values.insert(values.end(), own.begin(), own.end());
    }
    gradient_.set(values);
    optimizer_->update(kernels, workspace_, gradient_, 0.01F, 1.0F, step);
  }

  /// Goes on from the weights and the state of another run.
  void go_on_from(Kernels& kernels, const Run& other, std::int64_t step) {
    weights_.set(other.weights_.values());
    const auto& to = optimizer_->state().owner_states();
    std::copy_n(other.optimizer_->state().owner_states().f32(), to.element_count(), to.f32());
    optimizer_->state_changed(kernels, step);
  }

  std::vector<float> weights() const { return weights_.values(); }

 private:
  TestTensor weights_;
  TestTensor gradient_;
  std::vector<std::int64_t> turns_;
  Arena arena_ = Arena::host(Purpose::optimizer, std::size_t{1} << 18);
  Arena workspace_ = Arena::host(Purpose::workspace, std::size_t{1} << 18);
  std::optional<optim::Optimizer> optimizer_;
};

}  // namespace

TEST_CASE("each update renews the matrices whose turn it is, and the first all that it needs") {
  OperationCounter kernels;
  // Two sides of a matrix.
  Run soap(RuleKind::soap, {0, 1, 2});
  Run shampoo(RuleKind::shampoo, {0, 1, 2});
  for (std::int64_t step = 1; step <= 8; ++step) {
    INFO("step " << step);
    soap.step(kernels, step);
    CHECK(kernels.take("row_products") == (step == 1 ? 0 : 2));
    CHECK(kernels.take("symmetric_eigenvectors") == (step == 1 ? 6 : 0));
    shampoo.step(kernels, step);
    CHECK(kernels.take("symmetric_eigenvectors") == (step == 1 ? 6 : 2));
  }
  Run alike(RuleKind::soap, {2, 2});
  for (std::int64_t step = 1; step <= 8; ++step) {
    INFO("step " << step);
    alike.step(kernels, step);
    CHECK(kernels.take("row_products") == ((step - 1) % root_every == 2 ? 4 : 0));
  }
}

TEST_CASE("a matrix has the bits of its turn, whatever is updated beside it") {
  const auto kernels = make_cpu_kernels(1);
  for (const auto kind : {RuleKind::shampoo, RuleKind::soap}) {
    INFO(optim::name(kind));
    Run together(kind, {2, 0, 1});
    for (std::int64_t step = 1; step <= 7; ++step) together.step(*kernels, step);
    const auto all = together.weights();
    for (std::size_t at = 0; at < 3; ++at) {
      const std::int64_t turns[] = {2, 0, 1};
      Run alone(kind, {turns[at]});
      for (std::int64_t step = 1; step <= 7; ++step) alone.step(*kernels, step);
      const auto begin = all.begin() + static_cast<std::ptrdiff_t>(at) * elements;
      CHECK(alone.weights() == std::vector<float>(begin, begin + elements));
    }
  }
}

TEST_CASE("a run that goes on in the middle of a round has the bits of one that was not stopped") {
  const auto kernels = make_cpu_kernels(1);
  constexpr std::int64_t steps = 8;
  for (const auto kind : {RuleKind::shampoo, RuleKind::soap}) {
    for (std::int64_t stopped = 1; stopped <= 5; ++stopped) {
      INFO(optim::name(kind) << ", stopped after step " << stopped);
      Run whole(kind, {1, 2, 0});
      Run later(kind, {1, 2, 0});
      for (std::int64_t step = 1; step <= stopped; ++step) whole.step(*kernels, step);
      // Has counted to another number by then.
      later.step(*kernels, 1);
      later.go_on_from(*kernels, whole, stopped);
      for (auto step = stopped + 1; step <= steps; ++step) {
        whole.step(*kernels, step);
        later.step(*kernels, step);
      }
      CHECK(later.weights() == whole.weights());
    }
  }
}
