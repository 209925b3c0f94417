// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/step_fields.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/text.hpp"

#include <catch2/catch.hpp>

#include <string>
#include <vector>

using namespace trireme;
using telemetry::step_fields;
using telemetry::StepLine;

namespace {

std::vector<std::string> names() {
  std::vector<std::string> all;
  for (const auto& field : step_fields()) all.emplace_back(field.name);
  return all;
}

/// Names in the first column of the table behind `heading`.
std::vector<std::string> documented(const std::string& heading) {
  const auto page = base::value_or_throw(base::read_text_file(
      std::filesystem::path(TRIREME_SOURCE_DIR) / "docs" / "run-directory.md"));
  const auto begin = page.find(heading + "\n\n| field |");
  REQUIRE(begin != std::string::npos);
  const auto table = begin + heading.size() + 2;
  std::vector<std::string> all;
  for (const auto row : base::split(std::string_view(page).substr(table), '\n')) {
    if (!row.starts_with("|")) break;
    if (row.starts_with("| `")) all.emplace_back(row.substr(3, row.find('`', 3) - 3));
  }
  return all;
}

/// A line whose numbers are 1, 2, 3 ... in the order of the table.
StepLine counted() {
  StepLine line;
  line.step = 7;
  double next = 0;
  for (const auto& field : step_fields()) {
    if (field.number != nullptr) line.*field.number = ++next;
  }
  return line;
}

}  // namespace

TEST_CASE("the run directory's page has every number of a step, in the order of its line") {
  CHECK(documented("`train`, after each update:") == names());
}

TEST_CASE("a line has the fields of the table in its order, and is read back as it was") {
  const base::Json others{{"stage_bubble_ms", {2.5, 0.5}},
                          {"first_sample", 96},
                          {"optimizer_phases_ms", {{"gather", 1.5}}},
                          {"no such field", 1}};
  const auto line = counted();
  const auto json = telemetry::to_json(line, others);
  std::vector<std::string> written;
  for (const auto& [name, value] : json.items()) written.push_back(name);
  auto expected = names();
  expected.insert(expected.begin(), {"kind", "step"});
  CHECK(written == expected);
  CHECK(base::json_text(json).starts_with(
      R"({"kind":"train","step":7,"loss":1.0,"grad_norm":2.0,"learning_rate":3.0,"tokens":4,"first_sample":96,)"));

  telemetry::RunRecord record;
  record.take(base::json_text(json));
  REQUIRE(record.steps.size() == 1);
  const auto& read = record.steps.front();
  CHECK(read.step == 7);
  CHECK(read.stage_bubble_ms == std::vector<float>{2.5F, 0.5F});
  for (const auto& field : step_fields()) {
    if (field.number == nullptr) continue;
    CAPTURE(field.name);
    CHECK(read.*field.number == line.*field.number);
    CHECK(json.at(field.name) == line.*field.number);
  }
}

TEST_CASE("numbers that were not measured are left out") {
  StepLine line;
  line.loss = 2.5;
  CHECK(base::json_text(telemetry::to_json(line, base::Json::object())) ==
        R"({"kind":"train","step":0,"loss":2.5})");
}
