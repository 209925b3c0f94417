// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/pictures.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/plan/time_plan.hpp"

#include "plan/pictures/drawings.hpp"
#include "small_model.hpp"
#include "support/svg_check.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>

using namespace trireme;
using namespace trireme::plan;
using tests::model_of;
using tests::small_config;

namespace {

predict::Machine drawn_machine() {
  auto machine = tests::small_machine(std::int64_t{1} << 33);
  machine.site.node_hour = 10;
  return machine;
}

/// Pictures of the small model on so many ranks with these settings.
Pictures pictures_on(const predict::Machine& machine, int ranks,
                     std::vector<std::string> settings) {
  settings.emplace_back("numerics.backend=cuda");
  const auto config = small_config(std::move(settings));
  const auto memory = base::value_or_throw(plan_memory(config, model_of(config), ranks));
  return base::value_or_throw(pictures_of(memory, config.options(), machine));
}

bool has_text(const std::vector<std::string>& texts, const std::string& part) {
  return std::any_of(texts.begin(), texts.end(),
                     [&](const auto& text) { return text.find(part) != std::string::npos; });
}

ScaledStep run_of(double hours, double cost) {
  ScaledStep step;
  step.run.hours = hours;
  step.run.cost = cost;
  return step;
}

}  // namespace

TEST_CASE("pictures of a plan are XML, within their view boxes, and the same each time") {
  for (const int stages : {1, 2, 4}) {
    CAPTURE(stages);
    const std::vector<std::string> settings{base::format("parallel.pipeline={}", stages),
                                            "parallel.tensor=2"};
    const auto files = picture_files(pictures_on(drawn_machine(), 2 * stages * 2, settings));
    std::vector<std::string> names;
    for (const auto& file : files) {
      CAPTURE(file.name);
      names.push_back(file.name);
      CHECK(tests::svg_fault(file.svg).empty());
    }
    CHECK(names == std::vector<std::string>{"timeline.svg", "strong-scaling.svg",
                                            "weak-scaling.svg", "memory.svg", "pareto.svg"});
    const auto again = picture_files(pictures_on(drawn_machine(), 2 * stages * 2, settings));
    for (std::size_t file = 0; file < files.size(); ++file) {
      CHECK(files[file].svg == again[file].svg);
    }
  }
}

TEST_CASE("an element outside of a picture, and what is no XML, is found") {
  const std::string begin =
      "<svg viewBox=\"0 0 10 10\"><title>t</title><rect x=\"0\" y=\"0\" width=\"";
  CHECK(tests::svg_fault(begin + "10\" height=\"10\"/></svg>").empty());
  CHECK_FALSE(tests::svg_fault(begin + "11\" height=\"10\"/></svg>").empty());
  CHECK_FALSE(tests::svg_fault(begin + "10\" height=\"10\"></svg>").empty());
  CHECK_FALSE(tests::holds_path({0, 0, 10, 10}, "M5 5h6"));
  CHECK(tests::holds_path({0, 0, 10, 10}, "M5 5h4v-5L0 10"));
}

TEST_CASE("sizes of a layout are doubled and halved, and their steps are those of plans") {
  const auto machine = drawn_machine();
  const auto pictures = pictures_on(machine, 4, {"parallel.tensor=2"});
  // Eight sequences a step: up to eight replicas of one.
  std::vector<int> ranks;
  for (const auto& step : pictures.strong) {
    ranks.push_back(step.ranks);
    CHECK(step.global_batch == 8);
  }
  CHECK(ranks == std::vector<int>{2, 4, 8, 16});
  CHECK(pictures.weak.size() == 7);
  for (const auto& step : pictures.weak) CHECK(step.global_batch == 2 * step.ranks);
  for (const auto& [all, batch] : {std::pair(2, 8), std::pair(16, 8), std::pair(64, 128)}) {
    const auto config = small_config({"parallel.tensor=2", "numerics.backend=cuda",
                                      base::format("train.global_batch={}", batch)});
    const auto memory = base::value_or_throw(plan_memory(config, model_of(config), all));
    const auto step =
        base::value_or_throw(predict::predict_step(machine, workload_of(memory.options, machine)));
    const auto& steps = batch == 8 ? pictures.strong : pictures.weak;
    const auto found = std::find_if(steps.begin(), steps.end(),
                                    [&](const auto& each) { return each.ranks == all; });
    REQUIRE(found != steps.end());
    CHECK(found->seconds == predict::seconds_of(step.total()));
  }
  CHECK(pictures.strong.front().efficiency == 1);
  CHECK(pictures.strong.back().efficiency ==
        Approx(pictures.strong.front().seconds / pictures.strong.back().seconds / 8));
}

TEST_CASE("pictures have the numbers of their JSON") {
  const auto pictures = pictures_on(drawn_machine(), 8, {"parallel.pipeline=4"});
  const auto json = to_json(pictures);
  std::map<std::string, std::vector<std::string>> texts;
  for (const auto& file : picture_files(pictures)) texts[file.name] = tests::svg_texts(file.svg);
  CHECK(has_text(texts["timeline.svg"],
                 base::format(": {:.1f} ms", 1e3 * json["timeline"]["seconds"].get<double>())));
  REQUIRE(json["timeline"]["rows"].size() >= 4);
  for (const auto& row : json["timeline"]["rows"]) {
    CHECK(has_text(texts["timeline.svg"], base::format("stage {}", row["stage"].get<int>())));
    const int alike = row["alike"].get<int>();
    const auto rank = base::format("rank {}", row["rank"].get<int>());
    CHECK(has_text(texts["timeline.svg"],
                   alike == 1 ? rank : base::format("{} and {} like it", rank, alike - 1)));
  }
  for (const auto& [file, key] : {std::pair("strong-scaling.svg", "strong_scaling"),
                                  std::pair("weak-scaling.svg", "weak_scaling")}) {
    for (const auto& step : json[key]) {
      const double seconds = step["seconds"].get<double>();
      CHECK(has_text(texts[file], base::format("{:.1f} ms, {:.0f} %", 1e3 * seconds,
                                               100 * step["efficiency"].get<double>())));
      CHECK(has_text(texts[file], base::format("{}", step["ranks"].get<int>())));
    }
  }
  REQUIRE(json["memory"].size() == 4);
  for (const auto& stage : json["memory"]) {
    const auto total = stage["total"].get<std::size_t>();
    CHECK(has_text(texts["memory.svg"], base::bytes_text(total)));
    std::size_t sum = 0;
    for (const auto& [purpose, bytes] : stage.items()) {
      if (purpose != "total") sum += bytes.get<std::size_t>();
    }
    CHECK(sum == total);
  }
  for (const auto& step : json["strong_scaling"]) {
    CHECK(step["run"].contains("cost"));
    CHECK(has_text(texts["pareto.svg"], base::format("{} ranks", step["ranks"].get<int>())));
  }
}

TEST_CASE("without a price nothing is said of money") {
  auto machine = drawn_machine();
  machine.site.node_hour = 0;
  const auto files = picture_files(pictures_on(machine, 4, {}));
  CHECK(files.size() == 4);
}

TEST_CASE("a front has the runs that none is faster and cheaper than") {
  const std::vector<ScaledStep> runs{run_of(4, 1), run_of(2, 2), run_of(3, 3), run_of(1, 8),
                                     run_of(1, 9)};
  CHECK(pareto_front(runs) == std::vector<std::size_t>{3, 1, 0});
}
