// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/comparison.hpp"

#include "trireme/base/columns.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include "figure_texts.hpp"
#include "number_or_null.hpp"

#include <algorithm>

namespace trireme::report {
namespace {

using base::format;
using base::Json;
using config::RecordedValue;

/// More runs are compared in tables below each other.
constexpr std::size_t runs_of_a_table = 3;
constexpr std::size_t widest_label = 30;
constexpr std::size_t least_cell = 12;

const RecordedValue* find(const RunView& run, std::string_view key) {
  const auto found = std::find_if(run.values.begin(), run.values.end(),
                                  [key](const auto& value) { return value.key == key; });
  return found == run.values.end() ? nullptr : &*found;
}

std::string cell_text(const std::optional<RecordedValue>& value) {
  if (!value) return "-";
  const auto text = value->text.empty() ? std::string("(empty)") : value->text;
  return base::printable(value->origin.empty() ? text : format("{} ({})", text, value->origin));
}

using Rows = std::vector<std::vector<std::string>>;

Rows figure_rows(std::span<const RunView> runs) {
  Rows rows{{""}};
  for (const auto& run : runs) rows.front().push_back(base::printable(run.name));
  for (const auto& text : figure_texts(runs)) {
    rows.push_back({text.label});
    rows.back().insert(rows.back().end(), text.values.begin(), text.values.end());
  }
  return rows;
}

Rows difference_rows(std::span<const RunView> runs, const std::vector<KeyDifference>& all) {
  Rows rows;
  for (const auto& difference : all) {
    rows.push_back({base::printable(difference.key)});
    for (const auto& value : difference.values) rows.back().push_back(cell_text(value));
  }
  if (rows.empty() && runs.size() > 1) rows.push_back({"the configurations are equal"});
  return rows;
}

/// One table, with the column widths that both parts share.
std::string table(std::span<const RunView> runs, const std::vector<KeyDifference>& all,
                  std::size_t columns) {
  const auto figures = figure_rows(runs);
  const auto keys = difference_rows(runs, all);
  std::size_t label = 0;
  for (const auto& row : figures) label = std::max(label, base::width_of(row.front()));
  for (const auto& row : keys) {
    if (row.size() > 1) label = std::max(label, base::width_of(row.front()));
  }
  label = std::min(label, widest_label);
  const auto left = columns - std::min(columns, label + 2 * runs.size());
  std::vector<std::size_t> widths(1 + runs.size(), std::max(least_cell, left / runs.size()));
  widths.front() = label;
  auto text = base::wrapped_rows(figures, widths);
  if (runs.size() < 2) return text;
  if (all.empty()) return text + "\n" + keys.front().front() + "\n";
  return text + "\nkeys that differ (origin)\n" + base::wrapped_rows(keys, widths);
}

Json figures_json(const RunView& run) {
  const auto figures = figures_of(run);
  Json json{{"run", run.name}, {"path", run.path.string()}, {"state", name(run.state)}};
  json["step"] = figures.step;
  json["steps"] = figures.planned_steps > 0 ? Json(figures.planned_steps) : Json(nullptr);
  json["starts"] = figures.starts;
  json["loss"] = number_or_null(figures.loss);
  json["held_out_loss"] = number_or_null(figures.held_out_loss);
  json["best_held_out_loss"] = number_or_null(figures.best_held_out_loss);
  json["tokens"] = number_or_null(figures.tokens);
  json["epochs"] = number_or_null(figures.epochs);
  json["tokens_per_second"] = number_or_null(figures.tokens_per_second);
  json["mfu"] = number_or_null(figures.mfu);
  json["peak_flops"] = number_or_null(figures.peak_flops);
  json["parameters"] = number_or_null(figures.parameters);
  json["step_seconds"] = number_or_null(figures.step_seconds);
  return json;
}

}  // namespace

std::vector<KeyDifference> differences(std::span<const RunView> runs) {
  std::vector<std::string> keys;
  for (const auto& run : runs) {
    for (const auto& value : run.values) {
      const bool names_run = value.key == "run.name" || value.key == "run.directory";
      const bool is_new = std::find(keys.begin(), keys.end(), value.key) == keys.end();
      if (is_new && !names_run) keys.push_back(value.key);
    }
  }
  std::vector<KeyDifference> all;
  for (const auto& key : keys) {
    KeyDifference difference{key, {}};
    bool differs = false;
    for (const auto& run : runs) {
      const auto* value = find(run, key);
      difference.values.push_back(value == nullptr ? std::nullopt : std::optional(*value));
      const auto& first = difference.values.front();
      differs = differs || first.has_value() != (value != nullptr) ||
                (first && first->text != value->text);
    }
    if (differs) all.push_back(std::move(difference));
  }
  return all;
}

std::string comparison_text(std::span<const RunView> runs, std::size_t columns) {
  const auto all = differences(runs);
  std::string text;
  for (std::size_t begin = 0; begin < runs.size(); begin += runs_of_a_table) {
    const auto count = std::min(runs_of_a_table, runs.size() - begin);
    auto some = all;
    for (auto& difference : some) {
      const auto first = difference.values.begin() + static_cast<std::ptrdiff_t>(begin);
      difference.values = {first, first + static_cast<std::ptrdiff_t>(count)};
    }
    if (begin > 0) text += "\n";
    text += table(runs.subspan(begin, count), some, columns);
  }
  return text;
}

Json comparison_json(std::span<const RunView> runs) {
  Json json{{"runs", Json::array()}, {"differences", Json::array()}};
  for (const auto& run : runs) json["runs"].push_back(figures_json(run));
  for (const auto& difference : differences(runs)) {
    Json values = Json::array();
    for (const auto& value : difference.values) {
      values.push_back(value ? Json{{"text", value->text}, {"origin", value->origin}}
                             : Json(nullptr));
    }
    json["differences"].push_back({{"key", difference.key}, {"values", std::move(values)}});
  }
  return json;
}

}  // namespace trireme::report
