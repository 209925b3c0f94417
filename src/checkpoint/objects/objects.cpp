// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/objects/objects.hpp"

#include "trireme/base/format.hpp"
#include "trireme/checkpoint/manifest.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/folder_names.hpp"

#include <algorithm>
#include <chrono>
#include <span>

namespace trireme::checkpoint::objects {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view manifest_name = "manifest.json";

store::Listing list(const fs::path& folder, store::Depth depth) {
  const auto at = store::locate(folder);
  return at.store->list(at.name.empty() ? at.name : base::format("{}/", at.name), depth);
}

std::span<const std::byte> bytes_of(std::string_view text) {
  return std::as_bytes(std::span(text.data(), text.size()));
}

}  // namespace

std::optional<std::uint64_t> size(const fs::path& url) {
  const auto at = store::locate(url);
  return at.store->size(at.name);
}

std::vector<std::string> folders_in(const fs::path& folder) {
  return list(folder, store::Depth::one).folders;
}

std::map<std::string, std::uint64_t> objects_in(const fs::path& folder) {
  std::map<std::string, std::uint64_t> found;
  for (auto& [name, bytes] : list(folder, store::Depth::one).objects) {
    found.emplace(std::move(name), bytes);
  }
  return found;
}

bool has_manifest(const fs::path& step) {
  return size(step / manifest_name) || objects_in(step).contains(std::string(manifest_name));
}

bool is_young(const fs::path& folder) {
  constexpr std::chrono::hours youth{1};
  const auto newest = list(folder, store::Depth::all).newest;
  return !newest || std::chrono::system_clock::now() - *newest < youth;
}

std::vector<std::string> unnamed_folders(const fs::path& step) {
  auto found = list(step, store::Depth::one);
  std::erase_if(found.objects, [](const auto& object) { return object.name == manifest_name; });
  auto folders = std::move(found.folders);
  // Somebody else's.
  std::erase_if(folders, [](const auto& name) { return !is_id(name); });
  if (!found.objects.empty()) folders.emplace_back();
  // Files that the manifest of a committed step names are there: no need to read it.
  if (folders.size() < 2) return {};
  const auto manifest = read_manifest(step);
  if (!manifest.ok() || std::erase(folders, manifest->folder) == 0) return {};
  return folders;
}

void remove_step(const fs::path& step) {
  objects::remove(fs::path(step / manifest_name));
  remove_folder(step);
}

void remove_folder(const fs::path& folder) {
  const auto at = store::locate(folder);
  std::vector<std::string> names;
  for (const auto& object : list(folder, store::Depth::all).objects) {
    names.push_back(base::format("{}/{}", at.name, object.name));
  }
  at.store->remove(names);
  at.store->remove_unfinished(base::format("{}/", at.name));
}

void remove_files_beside_manifest(const fs::path& step) {
  const auto at = store::locate(step);
  std::vector<std::string> names;
  for (const auto& [name, bytes] : objects_in(step)) {
    if (name != manifest_name) names.push_back(base::format("{}/{}", at.name, name));
  }
  at.store->remove(names);
}

bool create(const fs::path& url, std::string_view text) {
  const auto at = store::locate(url);
  if (at.store->put(at.name, bytes_of(text), store::Existing::keep)) return true;
  // A write whose answer was lost is tried again, and finds itself.
  const auto found = read_text(url, text.size() + 1);
  if (found.empty()) {
    throw store::StoreError(base::format("cannot write '{}': the store says that it is there and "
                                         "that it is not; try again later",
                                         url.string()),
                            true);
  }
  return found == text;
}

std::string read_text(const fs::path& url, std::uint64_t max_bytes) {
  const auto at = store::locate(url);
  std::string text(std::min(at.store->size(at.name).value_or(0), max_bytes), '\0');
  at.store->read(at.name, std::as_writable_bytes(std::span(text.data(), text.size())), 0);
  return text;
}

void write_text(const fs::path& url, std::string_view text) {
  const auto at = store::locate(url);
  at.store->put(at.name, bytes_of(text), store::Existing::replace);
}

void remove(const fs::path& url) {
  const auto at = store::locate(url);
  at.store->remove({at.name});
}

}  // namespace trireme::checkpoint::objects
