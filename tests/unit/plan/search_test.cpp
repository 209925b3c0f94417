// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/search.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/plan/memory_plan.hpp"
#include "trireme/plan/time_plan.hpp"

#include "plan/search/objective.hpp"
#include "small_model.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>

using namespace trireme;
using namespace trireme::plan;
using tests::all_layouts;
using tests::model_of;
using tests::small_config;
using tests::small_machine;

namespace {

constexpr std::int64_t mebibyte = std::int64_t{1} << 20;

/// A layout as a plan of it says.
struct Planned {
  LayoutChoice choice;
  double seconds = 0;
  /// Part of them in which the rank that computes longest waits.
  double waiting = 0;
  /// With libraries; of the largest rank, or of all.
  std::int64_t bytes = 0;
};

std::vector<Planned> plans_of_all(const config::Config& config, const predict::Machine& machine,
                                  int ranks) {
  const auto model = model_of(config);
  std::vector<Planned> plans;
  for (const auto& choice : all_layouts(config, ranks)) {
    const auto plan =
        base::value_or_throw(plan_memory(tests::with_layout(config, choice), model, ranks));
    std::size_t bytes = 0;
    for (const auto& rank : plan.ranks) {
      const auto own = engine::total_bytes(rank.bytes);
      bytes = machine.node.computes_on_cores() ? bytes + own : std::max(bytes, own);
    }
    for (const auto& library : plan.libraries) bytes += library.bytes;
    const auto step =
        base::value_or_throw(predict::predict_step(machine, workload_of(plan.options, machine)));
    using predict::Part;
    const auto waits =
        step.parts[Part::pipeline] + step.parts[Part::bubble] + step.parts[Part::data];
    plans.push_back({choice, predict::seconds_of(step.total()), predict::seconds_of(waits),
                     static_cast<std::int64_t>(bytes)});
  }
  return plans;
}

/// Least seconds of each arrangement that fits, ascending.
std::vector<double> best_by_hand(const std::vector<Planned>& plans, std::int64_t memory) {
  std::map<LayoutChoice::Order, double> best;
  for (const auto& plan : plans) {
    if (plan.bytes > memory) continue;
    auto arrangement = plan.choice;
    arrangement.recompute = {};
    const auto [found, is_new] = best.try_emplace(arrangement.order(), plan.seconds);
    if (!is_new) found->second = std::min(found->second, plan.seconds);
  }
  std::vector<double> seconds;
  for (const auto& [order, least] : best) seconds.push_back(least);
  std::sort(seconds.begin(), seconds.end());
  return seconds;
}

SearchResult searched(const config::Config& config, const predict::Machine& machine,
                      const SearchRequest& request) {
  auto result = search_layouts(config, model_of(config), machine, request);
  INFO((result ? "" : result.failure().text));
  REQUIRE(result.ok());
  return *std::move(result);
}

std::string refusal(const config::Config& config, const predict::Machine& machine,
                    const SearchRequest& request) {
  const auto result = search_layouts(config, model_of(config), machine, request);
  REQUIRE_FALSE(result.ok());
  CHECK(result.failure().code == base::ExitCode::usage);
  return result.failure().text;
}

void compare_with_all(const config::Config& config, predict::Machine machine, int ranks) {
  const auto plans = plans_of_all(config, machine, ranks);
  std::vector<std::int64_t> sizes;
  for (const auto& plan : plans) sizes.push_back(plan.bytes);
  std::sort(sizes.begin(), sizes.end());
  // Room for few layouts, for some, for all.
  for (const auto share : {50U, 4U, 1U}) {
    machine.node.memory = sizes[(sizes.size() - 1) / share];
    CAPTURE(share, machine.node.memory);
    const auto by_hand = best_by_hand(plans, machine.node.memory);
    const auto result = searched(config, machine, {.ranks = ranks, .top = 4, .why = ""});
    const auto count = std::min<std::size_t>(4, by_hand.size());
    REQUIRE(result.best.size() == count);
    for (std::size_t index = 0; index < count; ++index) {
      CHECK(predict::seconds_of(result.best[index].step->total()) == by_hand[index]);
    }
    CHECK(result.best.front().lost_because.empty());
  }
}

}  // namespace

TEST_CASE("the layouts that a search finds are the best of all, whatever fits") {
  compare_with_all(small_config({"numerics.backend=cuda"}), small_machine(1), 4);
}

TEST_CASE("the layouts that a search finds on cores are the best of all") {
  auto machine = small_machine(1);
  machine.node.gpus = 0;
  machine.node.cores = 2;
  compare_with_all(small_config({"train.global_batch=4"}), machine, 4);
}

TEST_CASE("the layouts that a search finds in fp8 are the best of all, whatever fits") {
  // Short sequences: copies of weights take more than the activations of a larger micro-batch.
  const auto config = small_config({"numerics.backend=cuda", "numerics.precision=fp8",
                                    "numerics.cuda_graphs=false", "model.intermediate_size=256",
                                    "train.sequence_length=4", "train.global_batch=4"});
  compare_with_all(config, small_machine(1), 1);
  compare_with_all(config, small_machine(1), 2);
}

TEST_CASE("the layouts that a search finds for owners of matrices are the best of all") {
  compare_with_all(
      small_config({"numerics.backend=cuda", "optimizer.name=muon", "train.global_batch=4"}),
      small_machine(1), 4);
}

TEST_CASE("settings that are kept stay, and the best of the others are found") {
  const auto config = small_config({"numerics.backend=cuda", "parallel.pipeline=2",
                                    "train.micro_batch=2", "train.activation_checkpointing=norms"});
  const SearchRequest request{
      .ranks = 4,
      .top = 100,
      .why = "",
      .explains_known = false,
      .kept = {"parallel.pipeline", "train.micro_batch", "train.activation_checkpointing"}};
  const auto result = searched(config, small_machine(60 * mebibyte), request);
  CHECK(result.known.empty());
  CHECK(result.best.size() > 1);
  for (const auto& layout : result.best) {
    CHECK(layout.layout.pipeline == 2);
    CHECK(layout.layout.micro_batch == 2);
    CHECK(layout.layout.recompute == config::Recompute{config::Activation::norms});
  }
}

TEST_CASE("memory that is reserved, or beyond the limit of a rank, is not there") {
  const auto config = small_config({"numerics.backend=cuda"});
  const auto machine = small_machine(60 * mebibyte);
  const auto with_all = searched(config, machine, {.ranks = 2, .why = ""});
  const auto of_best = static_cast<std::int64_t>(with_all.best.front().memory_bytes.front());
  auto reserving = machine;
  reserving.node.reserved = machine.node.memory - of_best - 32 * mebibyte + 1;
  const auto limit = base::format("train.memory_limit={}", of_best + 32 * mebibyte - 1);
  const auto reserved = searched(config, reserving, {.ranks = 2, .why = ""});
  const auto limited =
      searched(small_config({"numerics.backend=cuda", limit}), machine, {.ranks = 2, .why = ""});
  CHECK(reserved.best.front().layout != with_all.best.front().layout);
  CHECK(limited.best.front().layout == reserved.best.front().layout);
}

TEST_CASE("a search says the same on any number of threads") {
  const auto config = small_config({"train.global_batch=32"});
  const auto machine = small_machine(40 * mebibyte);
  const auto on = [&](int threads) {
    return to_json(
        searched(config, machine, {.ranks = 8, .top = 7, .why = "tp=2", .threads = threads}));
  };
  const auto alone = on(1);
  CHECK(on(3) == alone);
  CHECK(alone["layouts"].size() == 7);
  CHECK(alone["asked"].size() == 1);
}

TEST_CASE("a search on GPUs is one of the backend for GPUs") {
  const auto result =
      searched(small_config(), small_machine(60 * mebibyte), {.ranks = 4, .why = ""});
  CHECK_THAT(text(result), Catch::Contains("[numerics]\nbackend = cuda\n"));
}

TEST_CASE("layouts that lose have their two causes, or the bytes that they lack") {
  const auto config = small_config({"numerics.backend=cuda", "train.global_batch=32"});
  auto machine = small_machine(60 * mebibyte);
  const auto slow = searched(config, machine, {.ranks = 8, .why = "tp=4,pp=1,sp=false"});
  REQUIRE(slow.asked.size() == 1);
  CHECK_THAT(slow.asked.front().lost_because,
             Catch::Contains(" slower: +") &&
                 Catch::Contains("tensor (the 4 ranks that share a matrix are on more than one"));
  // No room for a replica's whole state.
  const auto alone = searched(config, machine, {.ranks = 8, .why = "tp=1,pp=1,zero=1"});
  machine.node.memory = alone.asked.front().memory_bytes.front() / 2 + 32 * mebibyte;
  const auto large = searched(config, machine, {.ranks = 8, .why = "tp=1,pp=1,zero=1"});
  const auto& asked = large.asked.front();
  CHECK_FALSE(asked.step.has_value());
  CHECK_THAT(asked.lost_because, Catch::StartsWith("does not fit: ") &&
                                     Catch::Contains(" too much; with ") &&
                                     Catch::EndsWith(" it does"));
  CHECK(to_json(large)["asked"][0]["fits"] == false);
  // Layouts that people would try are explained unasked.
  REQUIRE(large.known.size() > 2);
  CHECK(large.known.front().name == "data parallel alone");
  // Shards of it have.
  CHECK_THAT(text(large.known.front().layout), Catch::Contains("zero=3"));
}

TEST_CASE("known layouts that no rule allows have the rule") {
  const auto config = small_config({"train.global_batch=4"});
  const auto result = searched(config, small_machine(60 * mebibyte), {.ranks = 8, .why = ""});
  CHECK_THAT(result.known.front().lost_because,
             Catch::StartsWith("is not legal: train.global_batch = 4"));
}

TEST_CASE("the fewest ranks, and the least money, are those of all parts of the machine") {
  const auto config = small_config({"numerics.backend=cuda"});
  auto machine = small_machine(60 * mebibyte);
  machine.site.node_hour = 3600;
  const auto fewest =
      searched(config, machine, {.ranks = 8, .objective = Objective::gpus, .why = ""});
  CHECK(fewest.best.front().layout.ranks == 1);
  const auto cheapest =
      searched(config, machine, {.ranks = 8, .objective = Objective::cost, .why = ""});
  double least = 1e300;
  for (const int ranks : {1, 2, 4, 8}) {
    const auto fastest = searched(config, machine, {.ranks = ranks, .why = ""});
    const double nodes = (ranks + 1) / 2;
    const auto& best = fastest.best.front();
    CHECK(*best.cost == Approx(nodes * predict::seconds_of(best.step->total())));
    least = std::min(least, *best.cost);
  }
  CHECK(*cheapest.best.front().cost == Approx(least));
}

TEST_CASE("the least CO2 is that of all parts of the machine, by what nodes take that wait") {
  const auto config = small_config({"numerics.backend=cuda", "train.global_batch=4"});
  auto machine = small_machine(60 * mebibyte);
  machine.site.busy_watts = 8000;
  machine.site.pue = 1.25;
  machine.site.grams_per_kwh = 400;
  for (const double idle_watts : {0.0, 1000.0, 7900.0, 16000.0}) {
    CAPTURE(idle_watts);
    machine.site.idle_watts = idle_watts;
    const auto found =
        searched(config, machine, {.ranks = 4, .objective = Objective::carbon, .why = ""});
    double least = 1e300;
    for (const int ranks : {1, 2, 4}) {
      for (const auto& plan : plans_of_all(config, machine, ranks)) {
        if (plan.bytes > machine.node.memory) continue;
        const double nodes = (ranks + 1) / 2;
        const double idle = idle_watts > 0 ? idle_watts : machine.site.busy_watts;
        const double joules = nodes * (plan.waiting * idle + (plan.seconds - plan.waiting) * 8000);
        least = std::min(least, joules / 3.6e6 * 1.25 * 0.4);
      }
    }
    CHECK(*found.best.front().kg_co2 == Approx(least));
    CHECK(to_json(found)["layouts"][0]["kg_co2e"] == *found.best.front().kg_co2);
    CHECK_THAT(text(found),
               Catch::StartsWith("least CO2 of a step") && Catch::Contains("kg of CO2"));
  }
}

TEST_CASE("all ranks that are asked for are looked at, whole nodes or not") {
  auto machine = small_machine(1);
  machine.node.gpus = 8;
  CHECK(worlds_of(machine, {.ranks = 12, .objective = Objective::gpus, .why = ""}) ==
        std::vector<int>{1, 2, 4, 12});
  CHECK(worlds_of(machine, {.ranks = 12, .why = ""}) == std::vector<int>{12});
}

TEST_CASE("a search ends where every step is too long, and says that") {
  auto machine = small_machine(60 * mebibyte);
  machine.node.peak_fp32 = machine.node.peak_bf16 = 1e-3;
  for (const auto objective : {Objective::time, Objective::gpus}) {
    const auto text = refusal(small_config({"numerics.backend=cuda"}), machine,
                              {.ranks = 4, .objective = objective, .why = ""});
    CHECK_THAT(text,
               Catch::StartsWith("no layout that fits has a step of at most 100 days on 4 ranks") &&
                   !Catch::Contains("too much"));
  }
}

TEST_CASE("what a search cannot do without is named") {
  const auto machine = small_machine(60 * mebibyte);
  CHECK_THAT(refusal(small_config({"train.global_batch=auto"}), machine, {.ranks = 4, .why = ""}),
             Catch::StartsWith("train.global_batch = auto"));
  for (const auto& [objective, key] : {std::pair{Objective::cost, "site.node_hour"},
                                       std::pair{Objective::carbon, "site.busy_watts"}})
    CHECK_THAT(refusal(small_config(), machine, {.ranks = 4, .objective = objective, .why = ""}),
               Catch::Contains(key));
  const auto little = small_machine(33 * mebibyte);
  CHECK_THAT(refusal(small_config(), little, {.ranks = 2, .why = ""}),
             Catch::StartsWith("no layout fits into machine plain on 2 ranks: tp="));
  // Names the fewest ranks that do, of twice as many and so on.
  const auto lacking = refusal(small_config(), little, {.ranks = 1, .why = ""});
  CHECK_THAT(lacking, Catch::Contains("; use ") && Catch::Contains(" ranks, on which tp="));
  const auto enough = std::stoi(lacking.substr(lacking.find("; use ") + 6));
  CHECK(search_layouts(small_config(), model_of(small_config()), small_machine(33 * mebibyte),
                       {.ranks = enough, .why = ""})
            .ok());
  CHECK_FALSE(search_layouts(small_config(), model_of(small_config()), small_machine(33 * mebibyte),
                             {.ranks = enough / 2, .why = ""})
                  .ok());
  CHECK_THAT(refusal(small_config(), machine, {.ranks = 7, .why = ""}),
             Catch::StartsWith("no layout of this model and batch is legal on 7 ranks"));
  CHECK_THAT(
      refusal(small_config({"parallel.tensor=4", "parallel.data=2"}), machine,
              {.ranks = 4, .why = "", .kept = {"parallel.tensor", "parallel.data"}}),
      Catch::Contains("is legal on 4 ranks with parallel.tensor, parallel.data as configured") &&
          Catch::EndsWith("or set some of these to auto"));
  for (const std::string not_known : {"train.document_mask=true", "offload.optimizer=host"})
    CHECK_THAT(refusal(small_config({not_known}), machine, {.ranks = 4, .why = ""}),
               Catch::Contains(" does not go with a search"));
  const auto of_level_2 = small_config({"parallel.zero_level=2"});
  CHECK_THAT(
      refusal(of_level_2, machine, {.ranks = 4, .why = "", .kept = {"parallel.zero_level"}}),
      Catch::StartsWith("parallel.zero_level = 2 does not go with a search of other settings"));
  // Where it is searched, too, its value does not count.
  CHECK(searched(of_level_2, machine, {.ranks = 4, .why = ""}).best.front().layout.zero_level != 2);
  CHECK_THAT(refusal(small_config(), machine, {.ranks = 4, .why = "tp=3"}),
             Catch::StartsWith("--why: no layout with tp=3 is legal on 4 ranks"));
  CHECK_THAT(refusal(small_config(), machine, {.ranks = 4, .why = "zero=2"}),
             Catch::Contains("or among those that are searched"));
  CHECK_THAT(refusal(small_config(), machine, {.ranks = 4, .why = "tensor=3"}),
             Catch::StartsWith("--why: tensor=3 is no setting"));
}
