#pragma once

#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// Everything that a manifest promises, of one that was parsed or is about to be written.
/// Failures (checkpoint) do not name the manifest.
base::Status check_manifest(const Manifest& manifest);

/// What a box takes in the text of a manifest.
std::size_t box_text_bytes(const StoredBox& stored);

/// Why a checkpoint is not written: its manifest `is` ("is 300 MiB") longer than readers take.
std::string manifest_too_long(std::string_view is);

/// The text of STEP_FOLDER/manifest.json, unchecked but for its size and kind. Throws
/// UnreadableError, apart from what is wrong with the file (Error, checkpoint).
std::string manifest_text_of(const std::filesystem::path& step_folder, const ReadAccess& access);

}  // namespace trireme::checkpoint
