// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"

#include <filesystem>
#include <string>

namespace trireme::apps {

/// What --version prints: version, commit, and each part that a build may have or lack, with its
/// version or the reason why it is absent; then what this machine gives at run time.
std::string version_text();

/// "trireme 0.1.0 (1a2b3c4d5e6f)": what wrote a checkpoint.
std::string tool_version();

/// RUN/versions.json: the same for programs, with the run's name and tags and the CPU. Throws
/// Error (checkpoint) when it cannot be written.
void write_versions(const std::filesystem::path& run, const config::Config& config);

}  // namespace trireme::apps
