// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"

#include "charts.hpp"
#include "drawn_runs.hpp"

#include <cmath>

namespace trireme::report {
namespace {

using base::format;

/// Six digits are more than a picture shows.
std::string number(double value) {
  return std::isfinite(value) ? format("{:.6g}", value) : "null";
}

std::string list(std::span<const double> values) {
  std::vector<std::string> texts;
  for (const double value : values) texts.push_back(number(value));
  return format("[{}]", base::join(texts, ","));
}

template <typename Member>
std::string list_of(std::span<const Range> ranges, Member member) {
  std::vector<double> values;
  for (const auto& range : ranges) values.push_back(range.*member);
  return list(values);
}

/// A text in JSON in which no element of HTML can begin or end.
std::string inline_json(std::string_view text) {
  const auto json = base::json_text(base::Json(text));
  std::string result;
  for (const char letter : json) {
    if (letter == '<' || letter == '>' || letter == '&') {
      result += format("\\u{:04x}", static_cast<int>(letter));
    } else {
      result += letter;
    }
  }
  return result;
}

std::string places(const Abscissas& at) {
  return format(R"({{"step":{},"tokens":{},"hours":{}}})", list(at.step), list(at.tokens),
                list(at.hours));
}

std::string run_data(const DrawnRun& drawn) {
  std::string text =
      format(R"({{"name":{},"x":{})", inline_json(drawn.run->name), places(drawn.at));
  std::vector<double> breaks(drawn.breaks.begin(), drawn.breaks.end());
  const std::vector<double> starts(drawn.starts.begin(), drawn.starts.end());
  text += format(R"(,"breaks":{},"starts":{},"curves":{{)", list(breaks), list(starts));
  const auto curves = all_curves();
  for (std::size_t index = 0; index < curves.size(); ++index) {
    if (index > 0) text += ',';
    if (curves[index].number == nullptr) {
      text += format(R"("{}":{{"x":{},"mean":{}}})", curves[index].id, places(drawn.held_out_at),
                     list(drawn.held_out));
      continue;
    }
    const auto& ranges = drawn.curves[index];
    text += format(R"("{}":{{"mean":{})", curves[index].id, list_of(ranges, &Range::mean));
    if (drawn.is_reduced()) {
      text += format(R"(,"low":{},"high":{})", list_of(ranges, &Range::lowest),
                     list_of(ranges, &Range::highest));
    }
    text += '}';
  }
  text += format(R"(}},"parts_x":{},"parts":[)", places(drawn.parts_at));
  for (std::size_t part = 0; part < part_count; ++part) {
    if (part > 0) text += ',';
    text += list(drawn.parts[part]);
  }
  return text + "]}";
}

}  // namespace

std::string script_data(std::span<const DrawnRun> runs) {
  std::string text = R"({"curves":[)";
  for (const auto& curve : all_curves()) {
    const auto domain = domain_of(curve, runs);
    text += format(R"({}{{"id":"{}","low":{},"high":{},"least":{},"smooth":{}}})",
                   text.ends_with('[') ? "" : ",", curve.id, number(domain.low),
                   number(domain.high), number(domain.least_positive), curve.is_smoothed);
  }
  text += R"(],"parts":[)";
  for (std::size_t part = 0; part < part_count; ++part) {
    if (part > 0) text += ',';
    text += inline_json(text_of(static_cast<Part>(part)).name);
  }
  text += format(R"(],"smoothing":{},"runs":[)", number(first_smoothing));
  for (const auto& run : runs) {
    if (&run != &runs.front()) text += ',';
    text += run_data(run);
  }
  return text + "]}";
}

}  // namespace trireme::report
