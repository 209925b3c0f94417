// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/calibrate.hpp"

#include "csv.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trireme::perf {

/// A published measurement of a step.
struct PublicRow {
  std::string id;
  /// Name of its file.
  std::string file;
  /// GPU, precision and software, which share constants.
  std::string stack;
  /// The same model, sequences, ranks and batch: layouts that are alternatives.
  std::string cell;
  predict::MeasuredStep step;
  /// The same model, program's version and layout, on any number of GPUs.
  std::string family;
  double batch = 0;
  /// Short text of the layout, for lists of misses.
  std::string layout;
};

/// Rows whose layout is complete and whose GPU has a machine file; others are left out, and so are
/// schedules that the engine has not, with a line on stderr.
std::vector<PublicRow> read_public_rows(const std::filesystem::path& csv,
                                        const std::filesystem::path& machines);

}  // namespace trireme::perf
