// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/plan/search.hpp"

#include "reasons.hpp"

#include <algorithm>

namespace trireme::plan {
namespace {

using base::format;

constexpr std::size_t rank_width = 5;
constexpr std::size_t number_width = 11;

std::string number_cell(const std::string& text) {
  return format("{:>{}}", text, number_width);
}

std::string least_of(Objective objective) {
  switch (objective) {
    case Objective::time:
      return "least time of a step";
    case Objective::cost:
      return "least cost of a step";
    case Objective::carbon:
      return "least CO2 of a step";
    case Objective::gpus:
      return "fewest ranks, then least time";
  }
  return "";
}

bool has_cost(const SearchResult& result) {
  return result.best.front().cost.has_value();
}

/// The column of kilograms stands where they are what layouts are compared by.
bool shows_carbon(const SearchResult& result) {
  return result.objective == Objective::carbon;
}

std::string figure_cell(const std::optional<double>& figure) {
  return number_cell(figure ? format("{:.4g}", *figure) : std::string());
}

std::string search_heading(const SearchResult& result) {
  auto line = format("{:>{}}{}", "rank", rank_width, number_cell("step"));
  for (const auto part : predict::part_names) line += number_cell(std::string(part));
  line += number_cell("memory");
  if (has_cost(result)) line += number_cell("cost");
  if (shows_carbon(result)) line += number_cell("kg of CO2");
  return line + "  layout\n";
}

std::string numbers(const JudgedLayout& layout) {
  std::string line;
  if (layout.step) {
    line += number_cell(seconds_text(predict::seconds_of(layout.step->total())));
    for (std::size_t part = 0; part < predict::part_names.size(); ++part) {
      const auto time = layout.step->parts[static_cast<predict::Part>(part)];
      line += number_cell(seconds_text(predict::seconds_of(time)));
    }
  } else {
    line = std::string(number_width * (1 + predict::part_names.size()), ' ');
  }
  const auto& bytes = layout.memory_bytes;
  const auto largest = std::max_element(bytes.begin(), bytes.end());
  return line + number_cell(largest == bytes.end() ? std::string() : base::bytes_text(*largest));
}

std::string row(const SearchResult& result, const JudgedLayout& layout) {
  auto line = format("{:>{}}", layout.rank > 0 ? format("{}", layout.rank) : "", rank_width) +
              numbers(layout);
  if (has_cost(result)) line += figure_cell(layout.cost);
  if (shows_carbon(result)) line += figure_cell(layout.kg_co2);
  line += "  " + text(layout.layout) + "\n";
  const bool is_asked_best = !layout.name.empty() && layout.lost_because.empty();
  const auto reason = is_asked_best ? std::string("the best of all") : layout.lost_because;
  if (reason.empty()) return line;
  return line + std::string(rank_width + 2, ' ') + reason + "\n";
}

std::string named_rows(const SearchResult& result, const std::vector<JudgedLayout>& layouts) {
  std::string lines;
  for (const auto& layout : layouts) lines += format("{}:\n{}", layout.name, row(result, layout));
  return lines;
}

base::Json layout_json(const SearchResult& result, const JudgedLayout& layout) {
  base::Json json{{"layout", text(layout.layout)},
                  {"ranks", layout.layout.ranks},
                  {"settings", settings_json(layout.layout)},
                  {"memory_bytes", layout.memory_bytes},
                  {"fits", layout.step.has_value()}};
  if (layout.step) json.update(predict::to_json(*layout.step));
  if (layout.cost) json["cost"] = *layout.cost;
  if (layout.kg_co2) json["kg_co2e"] = *layout.kg_co2;
  if (layout.rank > 0) json["rank"] = layout.rank;
  if (!layout.name.empty()) json["name"] = layout.name;
  if (!layout.lost_because.empty()) json["lost_because"] = layout.lost_because;
  if (layout.rank > 0) json["tie"] = static_cast<std::size_t>(layout.rank) <= result.ties;
  return json;
}

base::Json layouts_json(const SearchResult& result, const std::vector<JudgedLayout>& layouts) {
  base::Json json = base::Json::array();
  for (const auto& layout : layouts) json.push_back(layout_json(result, layout));
  return json;
}

}  // namespace

std::string text(const SearchResult& result) {
  auto text =
      format("{} on {}: of {} that are legal, {} simulated; memory of {} kinds of ranks measured\n",
             least_of(result.objective), result.machine,
             base::counted(static_cast<std::int64_t>(result.legal), "layout"), result.simulated,
             result.measured);
  if (result.ties > 1) {
    text += format("{} within {:.0f} % of the best, which the prediction cannot tell apart\n",
                   base::counted(static_cast<std::int64_t>(result.ties), "layout"),
                   100 * result.margin);
  }
  text += format("\n{}", search_heading(result));
  for (const auto& layout : result.best) text += row(result, layout);
  for (const auto* const layouts : {&result.known, &result.asked}) {
    if (!layouts->empty()) text += format("\n{}", named_rows(result, *layouts));
  }
  text += "\nthe best, as a configuration file to name behind the others:\n\n";
  return text + settings_text(result.best.front().layout, result.keys);
}

base::Json to_json(const SearchResult& result) {
  base::Json json{{"machine", result.machine},
                  {"objective", objective_names[static_cast<std::size_t>(result.objective)]},
                  {"margin", result.margin},
                  {"ties", result.ties},
                  {"legal", result.legal},
                  {"simulated", result.simulated},
                  {"measured", result.measured},
                  {"layouts", layouts_json(result, result.best)},
                  {"known", layouts_json(result, result.known)}};
  if (!result.asked.empty()) json["asked"] = layouts_json(result, result.asked);
  return json;
}

}  // namespace trireme::plan
