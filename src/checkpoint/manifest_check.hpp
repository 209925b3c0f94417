#pragma once

#include "trireme/checkpoint/manifest.hpp"

#include <filesystem>
#include <string>

namespace trireme::checkpoint {

/// Everything that a manifest promises, of one that was parsed or is about to be written.
/// Failures (checkpoint) do not name the manifest.
base::Status check_manifest(const Manifest& manifest);

/// The text of STEP_FOLDER/manifest.json, unchecked but for its size and kind.
base::Result<std::string> read_manifest_text(const std::filesystem::path& step_folder);

}  // namespace trireme::checkpoint
