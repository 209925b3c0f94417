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
/// renamed: those of a step have its name from the first on, and manifest.json, written last and by
/// one save alone, commits it. All throw store::StoreError.
namespace trireme::checkpoint::objects {

/// Bytes of an object; nothing if there is none.
std::optional<std::uint64_t> size(const std::filesystem::path& url);
/// Names of what is in a folder and has names below it.
std::vector<std::string> folders_in(const std::filesystem::path& folder);
/// Objects of a folder, by their names in it.
std::map<std::string, std::uint64_t> objects_in(const std::filesystem::path& folder);

/// Removes a step, its manifest first, with what uploads into it have left.
void remove_step(const std::filesystem::path& step);
/// Writes an object that is not there yet. False if it is, with another text: of several that write
/// texts of their own one has true.
bool create(const std::filesystem::path& url, std::string_view text);

std::string read_text(const std::filesystem::path& url, std::uint64_t max_bytes);
void write_text(const std::filesystem::path& url, std::string_view text);
void remove(const std::filesystem::path& url);

}  // namespace trireme::checkpoint::objects
