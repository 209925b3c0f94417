// SPDX-License-Identifier: Apache-2.0
// Plans of schedules whose activations must fit.
#include "unit/apps/plans.hpp"

#include <catch2/catch.hpp>

using namespace trireme::tests;

namespace {

std::vector<std::string> with_more_activations(std::vector<std::string> settings) {
  settings.insert(settings.begin(),
                  {"parallel.schedule=zb-h2", "parallel.pipeline=2", "train.micro_batch=1"});
  return settings;
}

std::string limit_of(std::int64_t bytes) {
  return "train.memory_limit=" + std::to_string(bytes);
}

}  // namespace

TEST_CASE("a zb-h2 that does not fit is refused with what it and zb-h1 take") {
  const auto total = [](const std::vector<std::string>& settings) {
    return plan_with(with_more_activations(settings))["largest"]["total"].get<std::int64_t>();
  };
  const auto most = total({});
  CHECK(total({limit_of(most)}) == most);
  const auto refusal = [](std::vector<std::string> settings) {
    const auto end = run_plan(with_more_activations(std::move(settings)));
    CHECK(end.exit_code == 2);
    return end.err;
  };
  const auto text = refusal({limit_of(most - 1)});
  CHECK_THAT(text, Catch::Contains("holds activations of 3 micro-batches") &&
                       Catch::Contains("zb-h1 holds 2") &&
                       Catch::Contains("use parallel.schedule=zb-h1, train.activation"));
  CHECK_THAT(refusal({limit_of(1 << 20)}),
             Catch::Contains("zb-h1 holds 2") && Catch::Contains("use train.activation"));
  // One stage runs 1f1b.
  CHECK(run_plan(with_more_activations({"parallel.pipeline=1", limit_of(1 << 20)})).exit_code == 0);
}

TEST_CASE("a zb-h2 whose stages choose what they compute again is planned as it starts") {
  const auto planned = [](std::vector<std::string> settings) {
    settings.insert(settings.begin(), {"model.num_hidden_layers=5", "parallel.stage_layers=4,1"});
    return plan_with(with_more_activations(std::move(settings)));
  };
  const auto kept = planned({})["ranks"];
  const auto total = [&](std::size_t rank) {
    return kept[rank]["bytes"]["total"].get<std::int64_t>();
  };
  // The first stage has most layers: it alone computes again.
  REQUIRE(total(1) < total(0));
  const auto limit = total(0) - mebibyte;
  REQUIRE(total(1) <= limit);
  const auto fitted = planned({"train.activation_checkpointing=auto", limit_of(limit)});
  CHECK(fitted["activation_checkpointing"][0] != "none");
  CHECK(fitted["activation_checkpointing"][1] == "none");
  CHECK(fitted["largest"]["total"].get<std::int64_t>() <= limit);
}

TEST_CASE("a plan of one rank is refused for another that does not fit") {
  const auto kept = plan_with(with_more_activations({}))["ranks"];
  const auto limit = kept[0]["bytes"]["total"].get<std::int64_t>();
  REQUIRE(limit < kept[1]["bytes"]["total"].get<std::int64_t>());
  const auto end = run_plan(with_more_activations({limit_of(limit)}), {"--rank", "0"});
  CHECK(end.exit_code == 2);
  CHECK_THAT(end.err, Catch::Contains("rank 1 takes"));
}
