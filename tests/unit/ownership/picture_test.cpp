// SPDX-License-Identifier: Apache-2.0
#include "trireme/ownership/picture.hpp"

#include "unit/ownership/owned_shapes.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <sstream>

using namespace trireme;
using namespace trireme::ownership;
using namespace trireme::tests;
using Catch::Matchers::Contains;

namespace {

View view_of(const ModelSizes& sizes, int data, int tensor,
             std::optional<Assignment> asked = std::nullopt) {
  View view;
  view.model = "qwen3 <" + std::string(sizes.name) + "> & more";
  view.optimizer = "muon";
  view.optimizer_origin = "assumed";
  view.newton_schulz_steps = default_newton_schulz_steps;
  view.tensors = tensors_of(sizes, NewtonSchulzForm::gram_symmetric, tensor);
  view.work = {.parameters = 1e9, .tokens = 1e6, .parameter_bytes = 2};
  const auto options = of_degrees(data, tensor);
  view.choice = choose_plan(view.tensors, options, view.work, view.machine, asked);
  view.adamw.plan = plan_of_adamw(view.tensors, options);
  view.adamw.price = price(view.adamw.plan, view.tensors, view.work, view.machine);
  return view;
}

std::size_t occurrences(const std::string& text, const std::string& what) {
  std::size_t count = 0;
  for (auto at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("the text of a plan of owners fits 100 columns, with all assignments beside AdamW") {
  for (const auto& sizes : qwen3_sizes) {
    for (const auto& [data, tensor] : {std::pair{1, 1}, std::pair{3, 4}, std::pair{256, 1}}) {
      const auto view = view_of(sizes, data, tensor);
      const auto text = ownership::text(view);
      std::istringstream lines(text);
      for (std::string line; std::getline(lines, line);) {
        INFO(line);
        CHECK(line.size() <= 100);
      }
      for (const char* row : {"\ncontiguous ", "\npadded ", "\nshared ", "\nAdamW "}) {
        CHECK_THAT(text, Contains(row));
      }
      CHECK(occurrences(text, " * ") == 1);
      CHECK_THAT(text, Contains(std::string(name(view.choice.chosen.plan.assignment)) + " *"));
      CHECK_THAT(text, Contains(view.machine.text().substr(0, 20)));
    }
  }
}

TEST_CASE("ranks beyond those shown are counted") {
  const auto view = view_of(qwen3_sizes[0], 24, 1);
  CHECK_THAT(ownership::text(view, 16), Contains("(8 more ranks"));
  CHECK_THAT(ownership::text(view, 24), !Contains("more ranks"));
}

TEST_CASE("the JSON of a plan says the owners of every matrix and adds up to the loads") {
  for (const auto each : all_assignments) {
    const auto view = view_of(qwen3_sizes[1], 256, 1, each);
    const auto json = ownership::json(view);
    CHECK(json["optimizer"] == "muon");
    CHECK(json["assignment"] == name(each));
    CHECK(json["ranks"] == 256);
    CHECK(json["max_over_mean"].get<double>() == view.choice.chosen.plan.max_over_mean());
    CHECK(json["padding"].get<double>() == view.choice.chosen.plan.padding());
    CHECK(json["bytes_on_wire"].get<double>() == bytes_on_wire(view.choice.chosen.plan, 2));
    CHECK(json["load"].size() == 256);
    CHECK(json["matrices"].size() == 7 * 28);
    double flops = 0;
    bool shared = false;
    for (const auto& matrix : json["matrices"]) {
      CHECK(matrix["name"].is_string());
      CHECK(matrix["rows"].is_number_integer());
      CHECK(matrix["columns"].is_number_integer());
      REQUIRE_FALSE(matrix["owner"].empty());
      for (const auto& rank : matrix["owner"]) CHECK(rank.get<int>() < 256);
      flops += matrix["flops"].get<double>();
      if (!matrix.contains("ranges")) {
        CHECK(matrix["owner"].size() == 1);
        continue;
      }
      shared = true;
      CHECK(matrix["ranges"].size() == matrix["owner"].size());
      // Runs of an update: three in Gram form, five in symmetric form.
      CHECK(matrix["square"].size() == (matrix["rows"] == matrix["columns"] ? 5 : 3));
    }
    CHECK(shared == (each == Assignment::shared));
    double load = 0;
    for (const auto& of_rank : json["load"]) load += of_rank.get<double>();
    CHECK(load == Approx(flops));
    CHECK(json["adamw"]["step_ms"]["exchange"] == 0.0);
  }
}

TEST_CASE("the picture of a plan has a bar for every part of a matrix, and is well-formed") {
  for (const auto each : all_assignments) {
    const auto view = view_of(qwen3_sizes[1], 256, 1, each);
    const auto& plan = view.choice.chosen.plan;
    std::size_t parts = 0;
    for (const auto& owner : plan.matrices) {
      // Square work may lie where no columns do.
      std::vector<int> ranks(owner.square_ranks);
      for (const auto& range : owner.ranges) ranks.push_back(range.rank);
      std::sort(ranks.begin(), ranks.end());
      parts += static_cast<std::size_t>(std::unique(ranks.begin(), ranks.end()) - ranks.begin());
    }
    const auto svg = ownership::svg(view);
    CHECK(svg == ownership::svg(view));
    CHECK(occurrences(svg, "<g><title>") == parts);
    CHECK_THAT(svg, Contains("qwen3 &lt;1.7B&gt; &amp; more"));
    CHECK_THAT(svg, !Contains("nan") && !Contains("inf"));
    CHECK(occurrences(svg, "<script") + occurrences(svg, "href") + occurrences(svg, "@import") ==
          0);
    for (const char* tag : {"svg", "g", "text", "title", "style"}) {
      const std::string open = std::string("<") + tag;
      CHECK(occurrences(svg, open + " ") + occurrences(svg, open + ">") ==
            occurrences(svg, std::string("</") + tag + ">"));
    }
    CHECK((occurrences(svg, "class=\"shared\"") > 0) == (each == Assignment::shared));
  }
}

TEST_CASE("a picture of very many ranks says how many it leaves out") {
  const auto view = view_of(qwen3_sizes[0], 1000, 1, Assignment::padded);
  CHECK_THAT(ownership::svg(view), Contains("488 more ranks"));
}

TEST_CASE("a model without matrices has a text, an object and a picture") {
  View view;
  view.tensors = {vector("embedding", 1000)};
  view.work = {.parameters = 1000, .tokens = 10, .parameter_bytes = 2};
  view.choice = choose_plan(view.tensors, of_degrees(2), view.work, view.machine);
  view.adamw.plan = plan_of_adamw(view.tensors, of_degrees(2));
  CHECK_THAT(ownership::text(view), Contains("0 matrices"));
  CHECK(ownership::json(view)["matrices"].empty());
  CHECK_THAT(ownership::svg(view), !Contains("nan"));
}
