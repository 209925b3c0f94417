// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"

#include <filesystem>
#include <span>
#include <string_view>
#include <vector>

/// Facts about the files of a configuration besides their values.
namespace trireme::config {

/// The file of a run directory that holds its resolved configuration. Whoever reads it there, has
/// the run in that folder, wherever it was when the file was written.
inline constexpr std::string_view resolved_file_name = "config.resolved.conf";

/// Config::resolve(), but values of a run's resolved configuration have the origins that the run
/// wrote down behind them, and not their places in that file.
base::Result<Config> resolve_as_recorded(const Sources& sources);

/// Config::resolve() for a start that goes on with a run, from the run's resolved configuration
/// among the files: values that the run has found itself (their origin is one of `found`) are
/// `auto` again, because another layout may find others; a run that was to begin anew is not to do
/// so again. Other values have the origins that the run wrote down.
base::Result<Config> resolve_resumed(const Sources& sources,
                                     std::span<const std::string_view> found);

/// Values that a later one of these files replaces: as `first` what stood, as `second` what comes
/// in its place. Files that cannot be read have none.
std::vector<Difference> replaced_values(std::span<const std::filesystem::path> files);

}  // namespace trireme::config
