// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"

#include <filesystem>
#include <string>
#include <vector>

/// Configuration files, read by Boost.Program_options a line at a time (docs/decisions/0001): the
/// format alone, for files with keys of their own too.
namespace trireme::config {

/// "section.name = text" as it stands somewhere; neither the name nor the text is checked yet.
struct Assignment {
  std::string name;
  std::string text;
  Origin origin;
  /// Origin, as text, that a run's resolved configuration recorded for the value.
  std::string recorded = {};
};

/// Assignments of a file (with all that it includes), in order, and its mistakes of form.
struct FileContents {
  std::vector<Assignment> assignments;
  /// "a.conf:3: problem (why); fix".
  std::vector<std::string> mistakes;
};

/// `include = other.conf` reads that file at this place, relative to the folder of the including
/// file. Files are limited in size, lines, depth and number: they are untrusted.
FileContents read_file(const std::filesystem::path& path);

}  // namespace trireme::config
