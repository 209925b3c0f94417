// SPDX-License-Identifier: Apache-2.0
#include "sections.hpp"

#include "trireme/report/comparison.hpp"
#include "trireme/report/findings.hpp"

#include "charts.hpp"
#include "report/figure_texts.hpp"

#include <algorithm>

namespace trireme::report {

namespace {

/// Columns of words that a screen has place for.
constexpr std::size_t most_columns_of_words = 7;

}  // namespace

Html text(std::string_view words) {
  return markup("{}", words);
}

Html section(std::string_view id, std::string_view title, const Html& content) {
  if (content.empty()) return {};
  return markup("<section id=\"{}\"><h2>{}</h2>\n{}</section>\n", id, title, content);
}

Html part_of_run(std::span<const RunView> runs, const RunView& run, const Html& content) {
  if (content.empty() || runs.size() == 1) return content;
  return markup("<h3>{}</h3>\n{}", run.name, content);
}

Html table(const std::vector<std::string>& head, const std::vector<std::vector<Html>>& rows,
           Cells cells) {
  // Two columns fit everywhere.
  const bool becomes_blocks = cells == Cells::of_words && head.size() > 2;
  Html titles;
  for (const auto& title : head) titles += markup("<th scope=\"col\">{}</th>", title);
  Html body;
  for (const auto& row : rows) {
    body += markup("<tr><th scope=\"row\">{}</th>", row.front());
    for (std::size_t column = 1; column < row.size(); ++column) {
      body += becomes_blocks ? markup("<td data-title=\"{}\">{}</td>", head[column], row[column])
                             : markup("<td>{}</td>", row[column]);
    }
    body += Html::trusted("</tr>\n");
  }
  return markup(
      "<div class=\"wide{}\"><table class=\"{}\"><thead><tr>{}</tr></thead><tbody>\n{}</tbody>"
      "</table></div>\n",
      becomes_blocks && head.size() > most_columns_of_words ? " many" : "",
      becomes_blocks ? "rows" : "compact", titles, body);
}

Html told(std::string_view text) {
  // "who          rank 3": what postmortem::text_of() puts into lines but the first.
  constexpr std::size_t name_width = 13;
  Html lines;
  while (!text.empty()) {
    const auto line = text.substr(0, text.find('\n'));
    const bool has_name = !lines.empty() && line.size() > name_width;
    const auto begin = has_name ? name_width : 0;
    lines +=
        markup("<span>{}{}</span>", has_name ? markup("<b>{}</b>", line.substr(0, begin)) : Html{},
               line.substr(begin));
    text.remove_prefix(std::min(line.size() + 1, text.size()));
  }
  return markup("<pre class=\"told\">{}</pre>", lines);
}

Html overview_section(std::span<const RunView> runs) {
  std::vector<std::string> head{""};
  for (const auto& run : runs) head.push_back(run.name);
  std::vector<std::vector<Html>> rows;
  for (const auto& figure : figure_texts(runs)) {
    rows.push_back({text(figure.label)});
    for (const auto& value : figure.values) rows.back().push_back(text(value));
  }
  Html content = table(head, rows);
  for (const auto& run : runs) {
    if (run.record.passed_over > 0) {
      content += markup(
          "<p class=\"note\">{}: {} lines of metrics.jsonl are torn or none of this format, and "
          "are left out.</p>\n",
          run.name, run.record.passed_over);
    }
  }
  return section("overview", "Overview", content);
}

Html findings_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) {
    Html items;
    for (const auto& finding : findings_of(run)) {
      items += markup("<li><b>{}</b> {}</li>\n", finding.rule, finding.text);
    }
    auto found = items.empty()
                     ? markup("<p>No rule has found anything that holds this run back.</p>\n")
                     : markup("<ul class=\"findings\">\n{}</ul>\n", items);
    if (!tells_of_time(run)) {
      found += markup(
          "<p class=\"note\">Of time nothing is said: the newest start has too few steps.</p>\n");
    }
    content += part_of_run(runs, run, found);
  }
  return section("findings", "Findings", content);
}

namespace {

/// Which line is whose, and a choice of runs; a single run needs neither.
Html legend_of(std::span<const DrawnRun> runs) {
  Html legend;
  for (std::size_t index = 0; index < runs.size() && runs.size() > 1; ++index) {
    legend += markup(
        "<label class=\"run\" data-run=\"{}\"><input type=\"checkbox\" checked><svg "
        "viewBox=\"0 0 24 8\"><path class=\"line\" d=\"M0 4H24\"/></svg>{}</label>",
        index, runs[index].run->name);
  }
  return legend;
}

}  // namespace

Html curves_section(std::span<const DrawnRun> runs) {
  // A single step is a point at the edge: its numbers stand in the overview.
  const auto has_line = [](const DrawnRun& run) { return run.at.step.size() > 1; };
  if (std::none_of(runs.begin(), runs.end(), has_line)) return {};
  Html figures;
  for (const auto& curve : all_curves()) figures += curve_figure(curve, runs);
  if (figures.empty()) return {};
  std::size_t most_steps = 0;
  for (const auto& run : runs) {
    if (run.is_reduced()) most_steps = std::max(most_steps, run.run->record.steps.size());
  }
  const auto reduced =
      most_steps == 0 ? Html{}
                      : markup(
                            " {} steps share {} columns: a line goes through the mean of each, "
                            "the band around it from its lowest value to its highest.",
                            most_steps, most_columns);
  return section(
      "curves", "Curves",
      markup("<div class=\"legend\">{}</div>\n<form class=\"controls\" hidden><label>to the right "
             "<select name=\"axis\"><option value=\"step\">steps</option><option "
             "value=\"tokens\">tokens</option><option value=\"hours\">hours</option></select>"
             "</label><label>smoothing <input type=\"range\" name=\"smoothing\" min=\"0\" "
             "max=\"0.99\" step=\"0.01\" value=\"{}\"></label><label><input type=\"checkbox\" "
             "name=\"logarithmic\"> logarithmic</label></form>\n<p class=\"note\">Thin: as "
             "recorded; bold: exponential moving average; dotted from top to bottom: a later start "
             "of the "
             "run.{}</p>\n<div class=\"figures\">\n{}</div>\n",
             legend_of(runs), first_smoothing, reduced, figures));
}

namespace {

constexpr std::string_view nothing = "–";

/// "12.3 ms, 31 %".
Html share_text(const PartTimes& times, std::size_t part) {
  return text(base::format("{} ms, {:.1f} %", three_digits(times[part]),
                           100 * times[part] / sum_of(times)));
}

/// Predicted parts beside measured ones, those of saves and evaluations apart.
Html predicted_table(const RunView& run) {
  const auto predicted = predicted_part_times(run.record);
  if (!predicted) return {};
  auto measured = mean_part_times(run.record);
  for (const auto part : {Part::save, Part::evaluation}) of(measured, part) = 0;
  const auto ms = [](double time) { return text(base::format("{} ms", three_digits(time))); };
  std::vector<std::vector<Html>> rows;
  for (std::size_t part = 0; part < part_count; ++part) {
    if (measured[part] == 0 && predicted->times[part] == 0) continue;
    rows.push_back({text(text_of(static_cast<Part>(part)).name), ms(predicted->times[part]),
                    ms(measured[part])});
  }
  const double whole = sum_of(predicted->times);
  rows.push_back({text("step"), ms(whole), ms(sum_of(measured))});
  return markup("<p>A step on {}: {:+.1f} % off</p>\n{}", predicted->machine,
                100 * (whole / std::max(sum_of(measured), 1e-9) - 1),
                table({"part", "predicted", "measured"}, rows, Cells::of_numbers));
}

Html predicted_tables(std::span<const DrawnRun> runs) {
  Html tables;
  for (const auto& drawn : runs) {
    const auto own = predicted_table(*drawn.run);
    if (own.empty()) continue;
    tables += runs.size() > 1 ? markup("<h3>{}</h3>\n{}", drawn.run->name, own) : own;
  }
  return tables;
}

}  // namespace

Html time_section(std::span<const DrawnRun> runs) {
  Html figures;
  std::vector<std::string> head{"part"};
  std::vector<std::vector<Html>> rows(part_count);
  for (std::size_t part = 0; part < part_count; ++part) {
    const auto& words = text_of(static_cast<Part>(part));
    rows[part] = {markup("<i class=\"p{}\"></i>{}<small>{}</small>", part, words.name, words.what)};
  }
  for (std::size_t index = 0; index < runs.size(); ++index) {
    const auto figure = parts_figure(runs[index], index);
    if (figure.empty()) continue;
    figures += figure;
    head.push_back(runs[index].run->name);
    const auto mean = mean_part_times(runs[index].run->record);
    for (std::size_t part = 0; part < part_count; ++part) {
      // A share that would round to 0.0 % is none.
      const bool counts = mean[part] >= 0.0005 * sum_of(mean) && mean[part] > 0;
      rows[part].push_back(counts ? share_text(mean, part) : text(nothing));
    }
  }
  if (figures.empty()) return {};
  std::erase_if(rows, [](const auto& row) {
    return std::all_of(row.begin() + 1, row.end(),
                       [](const Html& cell) { return cell.text() == nothing; });
  });
  return section(
      "time", "Where the time goes",
      markup("<div class=\"figures\">\n{}</div>\n{}<p class=\"note\">Means over the "
             "steps of the newest start but its first five. Parts that a version or a backend "
             "does not record are within compute.</p>\n{}",
             figures, table(head, rows), predicted_tables(runs)));
}

Html configuration_section(std::span<const RunView> runs) {
  Html content;
  const auto cell = [](const config::RecordedValue& value) {
    return markup("<code>{}</code><small>{}</small>", value.text, value.origin);
  };
  if (runs.size() > 1) {
    std::vector<std::string> head{"key"};
    for (const auto& run : runs) head.push_back(run.name);
    std::vector<std::vector<Html>> rows;
    for (const auto& difference : differences(runs)) {
      rows.push_back({text(difference.key)});
      for (const auto& value : difference.values) {
        rows.back().push_back(value ? cell(*value) : text("–"));
      }
    }
    content += rows.empty() ? markup("<p>The configurations are equal.</p>\n")
                            : markup("<h3>Keys that differ</h3>\n{}", table(head, rows));
  }
  for (const auto& run : runs) {
    std::vector<std::vector<Html>> given;
    std::vector<std::vector<Html>> standard;
    for (const auto& value : run.values) {
      const bool is_standard = value.origin == "default" || value.origin == "auto";
      (is_standard ? standard : given)
          .push_back({text(value.key), markup("<code>{}</code>", value.text), text(value.origin)});
    }
    if (run.values.empty()) continue;
    const std::vector<std::string> head{"key", "value", "origin"};
    content +=
        part_of_run(runs, run,
                    markup("<details{}><summary>{} keys that were set</summary>\n{}</details>\n"
                           "<details><summary>{} keys at their defaults</summary>\n{}</details>\n",
                           Html::trusted(runs.size() == 1 ? " open" : ""), given.size(),
                           table(head, given), standard.size(), table(head, standard)));
  }
  return section("configuration", "Configuration", content);
}

}  // namespace trireme::report
