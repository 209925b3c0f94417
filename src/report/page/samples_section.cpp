// SPDX-License-Identifier: Apache-2.0
// Texts that the model has made after evaluations.
#include "trireme/base/text.hpp"

#include "sections.hpp"

namespace trireme::report {
namespace {

/// Bytes of one text on the page.
constexpr std::size_t most_bytes = 4000;

Html part_of_text(std::string_view all) {
  const auto shown = base::cut_utf8(all, most_bytes);
  return shown.size() == all.size() ? text(all) : markup("{} …", shown);
}

Html list_of(const telemetry::SampleLine& line) {
  Html items;
  for (const auto& sample : line.samples) {
    items += markup("<li><b>{}</b>{}{}</li>\n", part_of_text(sample.prompt),
                    part_of_text(sample.text), text(sample.is_cut ? " …" : ""));
  }
  return markup("<ol class=\"samples\">\n{}</ol>\n", items);
}

Html title_of(const telemetry::SampleLine& line) {
  return line.temperature > 0 ? markup("after step {}, temperature {}", line.step, line.temperature)
                              : markup("after step {}", line.step);
}

}  // namespace

Html samples_section(std::span<const RunView> runs) {
  Html content;
  for (const auto& run : runs) {
    const auto& lines = run.record.samples;
    if (lines.empty()) continue;
    Html own =
        markup("<p class=\"note\">{}</p>\n{}", title_of(lines.back()), list_of(lines.back()));
    for (auto line = lines.rbegin() + 1; line != lines.rend(); ++line) {
      own +=
          markup("<details><summary>{}</summary>\n{}</details>\n", title_of(*line), list_of(*line));
    }
    content += part_of_run(runs, run, own);
  }
  return section("samples", "Samples", content);
}

}  // namespace trireme::report
