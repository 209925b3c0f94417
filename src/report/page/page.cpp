// SPDX-License-Identifier: Apache-2.0
#include "trireme/report/page.hpp"

#include "page_files.hpp"
#include "sections.hpp"

namespace trireme::report {
namespace {

/// Nothing is loaded, wherever the page lies: a browser refuses what this does not name.
constexpr const char* policy =
    "default-src 'none'; style-src 'unsafe-inline'; script-src 'unsafe-inline'; img-src data:";

Html heading(std::span<const RunView> runs, const PageOrigin& origin) {
  Html names;
  for (const auto& run : runs) {
    names += markup("<span class=\"state {0}\">{0}</span> ", name(run.state));
  }
  const auto title =
      runs.size() == 1 ? markup("{} {}", runs.front().name, names) : markup("{} runs", runs.size());
  return markup("<header><h1>{}</h1><p>made by {}, {}</p></header>\n", title, origin.tool_version,
                origin.time);
}

std::string title_of(std::span<const RunView> runs) {
  std::vector<std::string> names;
  for (const auto& run : runs) names.push_back(run.name);
  return base::format("{}", base::join(names, ", "));
}

}  // namespace

std::string page(std::span<const RunView> runs, const PageOrigin& origin) {
  const auto drawn = draw(runs);
  Html main = cause_section(runs);
  main += overview_section(runs);
  main += findings_section(runs);
  main += curves_section(drawn);
  main += samples_section(runs);
  main += time_section(drawn);
  main += memory_section(runs);
  main += layout_section(runs);
  main += placement_section(runs);
  main += history_section(runs);
  main += configuration_section(runs);
  main += versions_section(runs);
  const auto document = markup(
      "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
      "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
      "<meta http-equiv=\"Content-Security-Policy\" content=\"{}\">\n<title>{}</title>\n"
      "<style>\n{}</style>\n</head>\n<body>\n{}<main>\n{}</main>\n"
      "<script type=\"application/json\" id=\"data\">{}</script>\n<script>\n{}</script>\n"
      "</body>\n</html>\n",
      policy, title_of(runs), Html::trusted(page_style), heading(runs, origin), main,
      Html::trusted(script_data(drawn)), Html::trusted(page_script));
  return document.text();
}

}  // namespace trireme::report
