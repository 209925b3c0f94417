// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/objects/objects.hpp"

#include "trireme/base/format.hpp"
#include "trireme/store/object_store.hpp"

#include <algorithm>
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

void remove_step(const fs::path& step) {
  const auto at = store::locate(step);
  at.store->remove({base::format("{}/{}", at.name, manifest_name)});
  std::vector<std::string> names;
  for (const auto& object : list(step, store::Depth::all).objects) {
    names.push_back(base::format("{}/{}", at.name, object.name));
  }
  at.store->remove(names);
  at.store->remove_unfinished(base::format("{}/", at.name));
}

bool create(const fs::path& url, std::string_view text) {
  const auto at = store::locate(url);
  if (at.store->put(at.name, bytes_of(text), store::Existing::keep)) return true;
  // A write whose answer was lost is tried again, and finds itself.
  return read_text(url, text.size() + 1) == text;
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
