// SPDX-License-Identifier: Apache-2.0
// The page's contents for programs.
#include "trireme/report/comparison.hpp"
#include "trireme/report/findings.hpp"
#include "trireme/report/page.hpp"

#include "report/evidence.hpp"
#include "report/number_or_null.hpp"
#include "report/steady.hpp"
#include "report/time_parts.hpp"

namespace trireme::report {
namespace {

using base::Json;

/// Mean milliseconds of a steady step by part, and what moves in one.
Json step_json(const RunView& run) {
  Json json{{"steady_steps", run.record.steps.empty() ? 0 : steady_indices(run.record).size()}};
  const auto means = mean_part_times(run.record);
  for (std::size_t part = 0; part < part_count; ++part) {
    json["parts_ms"][text_of(static_cast<Part>(part)).name] = means[part];
  }
  json["predicted"] = nullptr;
  if (const auto predicted = predicted_part_times(run.record)) {
    json["predicted"] = {{"machine", predicted->machine}, {"step_ms", sum_of(predicted->times)}};
    for (std::size_t part = 0; part < part_count; ++part) {
      if (predicted->times[part] == 0) continue;
      json["predicted"]["parts_ms"][text_of(static_cast<Part>(part)).name] = predicted->times[part];
    }
  }
  json["stage_waits"] = stage_waits(run.record);
  const auto facts = step_facts(run);
  json["tokens"] = number_or_null(facts.tokens);
  json["tensor_bytes"] = number_or_null(facts.tensor_bytes);
  json["message_bytes"] = number_or_null(facts.message_bytes);
  json["gradient_bytes"] = number_or_null(facts.gradient_bytes);
  json["reduction_ms"] =
      number_or_null(mean_steady(run.record, &telemetry::StepLine::reduction_ms));
  json["stage_layers"] = facts.stage_layers;
  return json;
}

/// The newest ones; null without any.
Json samples_json(const telemetry::RunRecord& record) {
  if (record.samples.empty()) return nullptr;
  const auto& newest = record.samples.back();
  Json texts = Json::array();
  for (const auto& sample : newest.samples) {
    texts.push_back({{"prompt", sample.prompt},
                     {"text", sample.text},
                     {"ending", sample.is_cut ? "length" : "stop"}});
  }
  return {{"step", newest.step},
          {"temperature", number_or_null(newest.temperature)},
          {"texts", std::move(texts)}};
}

}  // namespace

Json page_json(std::span<const RunView> runs, const PageOrigin& origin) {
  auto json = comparison_json(runs);
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const auto& run = runs[index];
    auto& own = json["runs"][index];
    own["findings"] = Json::array();
    for (const auto& finding : findings_of(run)) {
      own["findings"].push_back({{"rule", finding.rule}, {"text", finding.text}});
    }
    own["cause"] = run.state == State::failed ? postmortem::to_json(run.postmortem) : Json(nullptr);
    own["mean_step"] = step_json(run);
    own["samples"] = samples_json(run.record);
    own["placement"] = run.placement ? record::to_json(*run.placement) : Json(nullptr);
  }
  json["made_by"] = origin.tool_version;
  json["time"] = origin.time;
  return json;
}

}  // namespace trireme::report
