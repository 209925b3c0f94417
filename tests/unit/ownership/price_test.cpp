// SPDX-License-Identifier: Apache-2.0
#include "trireme/ownership/price.hpp"

#include "unit/ownership/owned_shapes.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme;
using namespace trireme::ownership;
using namespace trireme::tests;
using Catch::Matchers::Contains;

namespace {

/// Only products take time: a FLOP a second.
MachineSpeeds slow_machine() {
  MachineSpeeds machine;
  machine.product_flops = 1;
  machine.memory_bytes = machine.node_bytes = machine.network_bytes = 1e30;
  machine.collective_seconds = machine.launch_seconds = 0;
  return machine;
}

double largest(const Plan& plan) {
  return *std::max_element(plan.load.begin(), plan.load.end());
}

const StepWork long_step{.parameters = 1e9, .tokens = 1e12, .parameter_bytes = 2};

}  // namespace

TEST_CASE("whole matrices take as long as the rank with most of them") {
  const auto tensors = tensors_of(qwen3_sizes[0], standard);
  for (const auto each : {Assignment::contiguous, Assignment::padded}) {
    const auto plan = make_plan(tensors, of_degrees(32), each);
    CHECK(price(plan, tensors, long_step, slow_machine()).compute == Approx(largest(plan)));
  }
}

TEST_CASE("a shared matrix takes its columns and its square work one after the other") {
  const std::vector<OwnedTensor> tensors{matrix("a", 64, 8 * 1024, gram)};
  const auto plan = make_plan(tensors, of_degrees(8), Assignment::shared);
  const auto& owner = plan.matrices.front();
  REQUIRE(owner.ranges.size() > 1);
  std::int64_t columns = 0;
  for (const auto& range : owner.ranges) columns = std::max(columns, range.end - range.begin);
  const auto& split = tensors[0].split;
  auto machine = slow_machine();
  const double chain = static_cast<double>(columns) * split.of_column() + split.of_squares();
  CHECK(price(plan, tensors, long_step, machine).compute == Approx(chain));
  // Terms and results go over the links in each of three runs: six ways of 4 n^2 bytes.
  machine.node_bytes = 4 * 64 * 64;
  CHECK(price(plan, tensors, long_step, machine).compute == Approx(chain + 6));
}

TEST_CASE("a rank turns to shared matrices between the products of a whole one") {
  // Rank 0 has a whole matrix and a few columns for which rank 1 waits.
  std::vector<OwnedTensor> tensors{matrix("whole", 64, 512, gram), matrix("shared", 64, 128, gram)};
  Plan plan;
  plan.data = 2;
  plan.load = {0, 0};
  plan.matrices = {{.tensor = 0, .ranges = {{0, 0, 512}}, .square_ranks = {}},
                   {.tensor = 1, .ranges = {{0, 0, 64}, {1, 64, 128}}, .square_ranks = {1, 1, 1}}};
  plan.buckets = {{{0, 128}, {0, 64, 128}}};
  const auto& split = tensors[1].split;
  const double rank_0 = tensors[0].flops + 64 * split.of_column();
  CHECK(price(plan, tensors, long_step, slow_machine()).compute == Approx(rank_0));
}

TEST_CASE("reductions hide behind backward but for what completes with its end") {
  const auto tensors = tensors_of(qwen3_sizes[0], gram);
  auto options = of_degrees(8);
  auto machine = slow_machine();
  machine.node_bytes = 4;  // an element a second
  auto plan = plan_of_adamw(tensors, options);
  REQUIRE(plan.buckets.size() > 2);
  const auto seconds = [&](const PlannedBucket& bucket) {
    return static_cast<double>(bucket.flat.size()) * 7 / 8;
  };
  machine.training_flops = 5e8;  // backward takes far longer than all reductions
  const double exposed = price(plan, tensors, long_step, machine).reduce;
  // The embedding lies in a bucket with the last matrices or behind them.
  CHECK(exposed >= Approx(seconds(plan.buckets.back())));
  CHECK(exposed < static_cast<double>(plan.size()) / 2);
  // Nor does what is computed before the last micro-batch.
  auto many = long_step;
  many.micro_batches = 1e12;
  const double whole = static_cast<double>(plan.size()) * 7 / 8;
  CHECK(price(plan, tensors, many, machine).reduce == Approx(whole).epsilon(0.01));
  machine.training_flops = 1e60;  // no time at all
  CHECK(price(plan, tensors, long_step, machine).reduce == Approx(whole));
  // One rank has nobody to send to.
  plan = plan_of_adamw(tensors, of_degrees(1));
  CHECK(price(plan, tensors, long_step, machine).reduce == 0);
  CHECK(price(plan, tensors, long_step, machine).gather == 0);
}

TEST_CASE("gathers take as long as parameters and padding, and without a forward all is exposed") {
  const auto tensors = tensors_of(qwen3_sizes[0], standard);
  auto machine = slow_machine();
  machine.network_bytes = machine.node_bytes = 2;
  for (const auto each : all_assignments) {
    const auto plan = make_plan(tensors, of_degrees(256), each);
    const double all = static_cast<double>(plan.size()) * 255 / 256;
    CHECK(gather_seconds(plan, long_step, machine) == Approx(all));
    machine.training_flops = 1e60;  // no time at all
    CHECK(price(plan, tensors, long_step, machine).gather == Approx(all));
    machine.training_flops = 1;
    machine.gathers = Gathers::at_once;
    CHECK(price(plan, tensors, long_step, machine).gather == Approx(all));
    machine.gathers = Gathers::behind_forward;
  }
}

TEST_CASE("gathers hide behind forward but for what it begins with") {
  // In the order of backward; forward takes six seconds, each matrix two of them.
  std::vector<OwnedTensor> tensors;
  for (const auto* name : {"c", "b", "a"}) tensors.push_back(matrix(name, 64, 64, gram));
  Plan plan;
  plan.data = 2;
  plan.load = {0, 0};
  const std::int64_t size = 64 * 64;
  for (std::size_t at = 0; at < 3; ++at) {
    const auto begin = static_cast<std::int64_t>(at) * size;
    plan.pieces.push_back({at, 0, size, begin});
    plan.buckets.push_back({{begin, begin + size}, {begin, begin + size / 2, begin + size}});
  }
  StepWork work{.parameters = 1, .tokens = 6, .parameter_bytes = 2};
  auto machine = slow_machine();
  machine.training_flops = 1;
  CHECK(work.training_seconds(machine, 2) / 3 == Approx(6));
  const auto gather = [&](double seconds) {
    machine.node_bytes = static_cast<double>(size) / seconds;
    return price(plan, tensors, work, machine).gather;
  };
  // The first bucket alone, as long as the others come in time.
  CHECK(gather(1) == Approx(1));
  CHECK(gather(2) == Approx(2));
  // Each comes a second later than forward could go on.
  CHECK(gather(3) == Approx(5));
  // The second of two micro-batches hides nothing: forward reads all in the first one, a second
  // for each matrix.
  work.micro_batches = 2;
  CHECK(gather(1) == Approx(1));
  CHECK(gather(2) == Approx(4));
  work.micro_batches = 1;
  // In one bucket nothing comes before all has come.
  plan.buckets = {{{0, 3 * size}, {0, 3 * size / 2, 3 * size}}};
  CHECK(gather(1) == Approx(3));
}

TEST_CASE("the exchange of a lone micro-group is exposed, that of many hides behind computing") {
  const auto tensors = tensors_of(qwen3_sizes[0], gram, 4);
  auto options = of_degrees(2, 4);
  auto machine = slow_machine();
  machine.node_bytes = 6;  // an element there and back a second
  const auto lone = make_plan(tensors, options, Assignment::padded);
  const double exposed = price(lone, tensors, long_step, machine).exchange;
  CHECK(exposed > 0);
  options.group_bytes = std::int64_t{32} << 20;
  const auto many = make_plan(tensors, options, Assignment::padded);
  CHECK(price(many, tensors, long_step, machine).exchange < exposed / 2);
}

TEST_CASE("data-parallel ranks of one node use all of its NICs") {
  const MachineSpeeds machine;
  CHECK(machine.data_bytes(8, 1) == machine.node_bytes);
  CHECK(machine.data_bytes(256, 1) == machine.node_bytes);
  CHECK(machine.data_bytes(32, 8) == machine.network_bytes);
  CHECK(machine.data_bytes(64, 4) == 2 * machine.network_bytes);
  CHECK(machine.data_bytes(2, 4) == machine.node_bytes);
}

TEST_CASE("the choice is the plan with the smallest total, and its reason names all three") {
  for (const auto& sizes : {qwen3_sizes[0], qwen3_sizes[3]}) {
    const auto tensors = tensors_of(sizes, gram);
    const MachineSpeeds machine;
    const auto choice = choose_plan(tensors, of_degrees(256), long_step, machine);
    CHECK(choice.others.size() == 2);
    for (const auto& other : choice.others) {
      CHECK(other.plan.assignment != choice.chosen.plan.assignment);
      CHECK(other.price.total() >= choice.chosen.price.total());
    }
    for (const auto each : all_assignments)
      CHECK_THAT(choice.reason, Contains(std::string(name(each))));
  }
}

TEST_CASE("a ragged collective starts once for each owner, or once where counts may differ") {
  // Three of four ranks own a matrix of the only bucket.
  const std::vector<OwnedTensor> tensors{matrix("a", 64, 64, gram), matrix("b", 64, 128, gram),
                                         matrix("c", 64, 64, gram)};
  const auto plan = make_plan(tensors, of_degrees(4), Assignment::contiguous);
  REQUIRE(plan.buckets.size() == 1);
  auto machine = slow_machine();
  machine.collective_seconds = 1;
  CHECK(price(plan, tensors, long_step, machine).gather == Approx(3));
  machine.ragged = RaggedCollectives::as_equal;
  CHECK(price(plan, tensors, long_step, machine).gather == Approx(1));
}

TEST_CASE("of plans that are given the one with the smallest total is chosen") {
  const auto tensors = tensors_of(qwen3_sizes[0], gram);
  std::vector<PricedPlan> plans;
  for (const auto each : {Assignment::contiguous, Assignment::padded}) {
    plans.push_back({make_plan(tensors, of_degrees(8), each), {}});
  }
  plans[0].price.gather = 2;
  plans[1].price.gather = 1;
  const auto choice = choose(std::move(plans));
  CHECK(choice.chosen.plan.assignment == Assignment::padded);
  CHECK(choice.others.size() == 1);
  CHECK_THAT(choice.reason, Contains("padded adds 1 s to a step; contiguous adds 1 s more"));
}

TEST_CASE("a plan of shared matrices that shares none is not chosen") {
  const auto tensors = tensors_of(qwen3_sizes[0], gram);
  std::vector<PricedPlan> plans;
  for (const auto each : {Assignment::contiguous, Assignment::shared}) {
    plans.push_back({make_plan(tensors, of_degrees(1), each), {}});
  }
  plans[0].price.gather = 2;
  plans[1].price.gather = 1;
  const auto choice = choose(std::move(plans));
  CHECK(choice.chosen.plan.assignment == Assignment::contiguous);
  CHECK_THAT(choice.reason, Contains("shared would share none"));
}

TEST_CASE("without time for messages and starts, sharing is chosen; on one rank nothing differs") {
  const auto tensors = tensors_of(qwen3_sizes[2], gram);
  auto machine = slow_machine();
  machine.training_flops = 1e30;
  CHECK(choose_plan(tensors, of_degrees(256), long_step, machine).chosen.plan.assignment ==
        Assignment::shared);
  const auto lone = choose_plan(tensors, of_degrees(1), long_step, machine);
  CHECK(lone.chosen.plan.assignment == Assignment::contiguous);
  CHECK_THAT(lone.reason, Contains("padded as much"));
}

TEST_CASE("exchanged bytes are counted for shared matrices and tensor-parallel owners") {
  const std::vector<OwnedTensor> tensors{matrix("a", 64, 256, gram, 2)};
  Plan plan;
  plan.data = 1;
  plan.tensor = 2;
  plan.matrices = {{.tensor = 0, .ranges = {{0, 0, 256}}, .square_ranks = {}}};
  // Half of the matrix goes to the owner in four bytes, and comes back in two.
  CHECK(exchange_bytes(plan, tensors, 2) == 6.0 * 64 * 256 / 2);
  plan.data = 2;
  plan.tensor = 1;
  plan.matrices = {
      {.tensor = 0, .ranges = {{0, 0, 128}, {1, 128, 256}}, .square_ranks = {1, 1, 1}}};
  // Rank 0 sends its term and gets the result, in three rounds.
  CHECK(exchange_bytes(plan, tensors, 2) == 3 * 6 * 64 * 64);
}
