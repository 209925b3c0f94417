// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "drawn_runs.hpp"
#include "html.hpp"

/// Parts of the page. Those of runs that have nothing for them are empty.
namespace trireme::report {

/// The words of `trireme why` on runs that failed.
Html cause_section(std::span<const RunView> runs);
Html overview_section(std::span<const RunView> runs);
Html findings_section(std::span<const RunView> runs);
Html curves_section(std::span<const DrawnRun> runs);
/// Prompts and what the model has made of them, the newest first.
Html samples_section(std::span<const RunView> runs);
Html time_section(std::span<const DrawnRun> runs);
Html memory_section(std::span<const RunView> runs);
Html layout_section(std::span<const RunView> runs);
/// Which rank computes on which node, cores and GPU.
Html placement_section(std::span<const RunView> runs);
/// Starts, failures and what else happened.
Html history_section(std::span<const RunView> runs);
Html configuration_section(std::span<const RunView> runs);
Html versions_section(std::span<const RunView> runs);

/// A section of the page; nothing where it has no content.
Html section(std::string_view id, std::string_view title, const Html& content);
/// The content, under the run's name if there are several.
Html part_of_run(std::span<const RunView> runs, const RunView& run, const Html& content);
/// Contents of a table's cells: numbers stay in their columns on the narrowest page.
enum class Cells { of_words, of_numbers };
/// A table; where the page is too narrow for its words, a list of blocks, each a row.
Html table(const std::vector<std::string>& head, const std::vector<std::vector<Html>>& rows,
           Cells cells = Cells::of_words);
/// The text of postmortem::text_of(): names at the left, and beside them what may be long.
Html told(std::string_view text);
Html text(std::string_view words);

}  // namespace trireme::report
