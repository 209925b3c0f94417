// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

/// Steps in an object store, under URLs ("s3://BUCKET/NAME/step-000000012"). Objects cannot be
/// renamed: each save writes to a folder of its own in the step's, and manifest.json, written last,
/// names it, which commits the step. All throw store::StoreError.
namespace trireme::checkpoint::objects {

/// Bytes of an object; nothing if there is none.
std::optional<std::uint64_t> size(const std::filesystem::path& url);
/// Names of what is in a folder and has names below it.
std::vector<std::string> folders_in(const std::filesystem::path& folder);
/// Objects of a folder, by their names in it.
std::map<std::string, std::uint64_t> objects_in(const std::filesystem::path& folder);

/// True if a step has a manifest. A store may say of an object that is there that it is not, for a
/// while: "no" is said once both the object and a listing have been asked for.
bool has_manifest(const std::filesystem::path& step);
/// True if something was written to a folder within the last hour, or its objects do not tell. It
/// may be a save's that is under way, or a step whose manifest the store does not show yet.
bool is_young(const std::filesystem::path& folder);
/// Folders in a committed step's which its manifest does not name: of saves that were killed, or
/// that others have replaced. An empty name stands for files beside the manifest.
std::vector<std::string> unnamed_folders(const std::filesystem::path& step);

/// Removes a step, its manifest first, with what uploads into it have left.
void remove_step(const std::filesystem::path& step);
/// Removes a folder, with what uploads into it have left.
void remove_folder(const std::filesystem::path& folder);
/// Removes the files of a step that lie beside its manifest.
void remove_files_beside_manifest(const std::filesystem::path& step);
/// Writes an object that is not there yet. False if it is, with another text: of several that write
/// texts of their own one has true. Throws StoreError that may pass if the store says at once that
/// it is there and that it is not.
bool create(const std::filesystem::path& url, std::string_view text);

std::string read_text(const std::filesystem::path& url, std::uint64_t max_bytes);
void write_text(const std::filesystem::path& url, std::string_view text);
void remove(const std::filesystem::path& url);

}  // namespace trireme::checkpoint::objects
