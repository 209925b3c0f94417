// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"

#include <filesystem>
#include <string>

namespace trireme::apps {

/// Output of --version: version, commit, and each optional part of a build, with its version or the
/// reason why it is absent; then the libraries of this machine at run time.
std::string version_text();

/// "trireme 0.1.0 (1a2b3c4d5e6f)": the writer's name in a checkpoint.
std::string tool_version();

/// Writes RUN/versions.json: version_text() as JSON, with the run's name and tags and the CPU.
/// Throws Error (checkpoint) when it cannot be written.
void write_versions(const std::filesystem::path& run, const config::Config& config);

}  // namespace trireme::apps
