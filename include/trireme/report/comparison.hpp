// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/report/run_view.hpp"

#include <optional>

namespace trireme::report {

/// A key whose recorded values differ between runs.
struct KeyDifference {
  std::string key;
  /// [run]; nothing where a run does not have the key.
  std::vector<std::optional<config::RecordedValue>> values;
};

/// In the order of the first run's configuration; without name and folder of the run.
std::vector<KeyDifference> differences(std::span<const RunView> runs);

/// Figures of the runs beside each other, and below them the differences of their configurations,
/// in at most `columns` columns.
std::string comparison_text(std::span<const RunView> runs, std::size_t columns);
/// {"runs": [{"run", "path", "state", "step", "steps", .. figures ..}],
///  "differences": [{"key", "values": [{"text", "origin"} or null]}]}.
base::Json comparison_json(std::span<const RunView> runs);

}  // namespace trireme::report
