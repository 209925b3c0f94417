// SPDX-License-Identifier: Apache-2.0
#include "unit/checkpoint/storage/recorded_storage.hpp"

#include "trireme/base/format.hpp"

#include <fcntl.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <random>
#include <stdexcept>
#include <tuple>

namespace trireme::tests {

namespace fs = std::filesystem;

namespace {

/// Number of a shard's file; -1 for others.
int shard_number(const fs::path& path) {
  const auto name = path.filename().string();
  constexpr std::string_view begin = "shard-";
  if (!name.starts_with(begin)) return -1;
  int number = -1;
  std::from_chars(name.data() + begin.size(), name.data() + name.size(), number);
  return number;
}

}  // namespace

RecordedStorage::RecordedStorage(fs::path root, fs::path memory) : root_(std::move(root)) {
  fs::copy(root_, memory, fs::copy_options::recursive);
  add_tree(memory);
  for (const auto& node : nodes_) now_.push_back(node.names);
}

int RecordedStorage::add_tree(const fs::path& path) {
  const auto node = static_cast<int>(nodes_.size());
  nodes_.push_back({path.filename().string(), fs::is_directory(path), path, {}});
  if (!fs::is_directory(path)) return node;
  for (const auto& entry : fs::directory_iterator(path)) {
    const int child = add_tree(entry.path());
    nodes_[static_cast<std::size_t>(node)].names[entry.path().filename().string()] = child;
  }
  return node;
}

int RecordedStorage::node_at(const fs::path& path) const {
  int node = 0;
  for (const auto& part : path.lexically_relative(root_)) {
    if (part == ".") continue;
    const auto& names = now_[static_cast<std::size_t>(node)];
    const auto found = names.find(part.string());
    if (found == names.end()) throw std::logic_error("no such name was recorded: " + path.string());
    node = found->second;
  }
  return node;
}

void RecordedStorage::record(Change change) {
  change.time = ++time_;
  apply(change, now_);
  changes_.push_back(std::move(change));
}

int RecordedStorage::add_node(const fs::path& path, bool folder) {
  const auto node = static_cast<int>(nodes_.size());
  auto name = path.filename().string();
  nodes_.push_back({name, folder, {}, {}});
  now_.emplace_back();
  record({.kind = Change::Kind::add,
          .node = node_at(path.parent_path()),
          .name = std::move(name),
          .child = node});
  return node;
}

int RecordedStorage::make_folder(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  const int result = FileSystem::make_folder(path);
  if (result != 0) return result;
  add_node(path, true);
  return result;
}

int RecordedStorage::open(const fs::path& path, int flags, unsigned mode) {
  std::unique_lock lock(mutex_);
  const bool is_new = (flags & O_CREAT) != 0;
  shard_closed_.wait(lock, [&] { return !is_new || closed_shards_ >= shard_number(path); });
  const int descriptor = FileSystem::open(path, flags, mode);
  if (descriptor < 0) return descriptor;
  if (is_new) add_node(path, false);
  descriptors_[descriptor] = node_at(path);
  return descriptor;
}

int RecordedStorage::allocate(int descriptor, std::uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  const int result = FileSystem::allocate(descriptor, bytes);
  if (result == 0) {
    record({.kind = Change::Kind::resize, .node = descriptors_.at(descriptor), .offset = bytes});
  }
  return result;
}

ssize_t RecordedStorage::write(int descriptor, std::span<const std::byte> bytes,
                               std::uint64_t offset) {
  const std::lock_guard lock(mutex_);
  const auto count = FileSystem::write(descriptor, bytes, offset);
  if (count > 0) {
    const auto written = bytes.first(static_cast<std::size_t>(count));
    record({.kind = Change::Kind::write,
            .node = descriptors_.at(descriptor),
            .offset = offset,
            .bytes = {written.begin(), written.end()}});
  }
  return count;
}

int RecordedStorage::sync(int descriptor) {
  const std::lock_guard lock(mutex_);
  const int node = descriptors_.at(descriptor);
  ++time_;
  if (node == 0) root_syncs_.push_back(time_);
  if (file_syncs_lost_ && !nodes_[static_cast<std::size_t>(node)].folder) return 0;
  for (auto& change : changes_) {
    if (change.node == node) change.durable = std::min(change.durable, time_);
  }
  return 0;
}

int RecordedStorage::close(int descriptor) {
  const std::lock_guard lock(mutex_);
  const int node = descriptors_.at(descriptor);
  descriptors_.erase(descriptor);
  const bool last = std::none_of(descriptors_.begin(), descriptors_.end(),
                                 [node](const auto& open) { return open.second == node; });
  if (last && shard_number(nodes_[static_cast<std::size_t>(node)].name) >= 0) {
    ++closed_shards_;
    shard_closed_.notify_all();
  }
  return FileSystem::close(descriptor);
}

int RecordedStorage::rename(const fs::path& from, const fs::path& to) {
  const std::lock_guard lock(mutex_);
  const int result = FileSystem::rename(from, to);
  if (result == 0) {
    record({.kind = Change::Kind::rename,
            .node = node_at(from.parent_path()),
            .name = from.filename().string(),
            .other = to.filename().string()});
  }
  return result;
}

int RecordedStorage::exchange(const fs::path& a, const fs::path& b) {
  const std::lock_guard lock(mutex_);
  if (exchange_forbidden_) return errno = EINVAL, -1;
  const int result = FileSystem::exchange(a, b);
  if (result == 0) {
    record({.kind = Change::Kind::exchange,
            .node = node_at(a.parent_path()),
            .name = a.filename().string(),
            .other = b.filename().string()});
  }
  return result;
}

int RecordedStorage::remove_folder(const fs::path& path) {
  const std::lock_guard lock(mutex_);
  const int folder = node_at(path);
  const auto names = now_[static_cast<std::size_t>(folder)];
  for (const auto& [name, child] : names) {
    record({.kind = Change::Kind::remove, .node = folder, .name = name});
  }
  record({.kind = Change::Kind::remove,
          .node = node_at(path.parent_path()),
          .name = path.filename().string()});
  return FileSystem::remove_folder(path);
}

void RecordedStorage::apply(const Change& change, Names& names) {
  auto& folder = names[static_cast<std::size_t>(change.node)];
  const auto found = folder.find(change.name);
  switch (change.kind) {
    case Change::Kind::add:
      folder[change.name] = change.child;
      return;
    case Change::Kind::remove:
      folder.erase(change.name);
      return;
    case Change::Kind::rename:
      if (found == folder.end()) return;
      folder[change.other] = found->second;
      folder.erase(change.name);
      return;
    case Change::Kind::exchange: {
      const auto other = folder.find(change.other);
      if (found != folder.end() && other != folder.end()) std::swap(found->second, other->second);
      return;
    }
    case Change::Kind::write:
    case Change::Kind::resize:
      return;
  }
}

std::string RecordedStorage::text_of(std::size_t change) const {
  static constexpr const char* kinds[] = {"add", "remove", "rename", "exchange", "write", "resize"};
  const auto& [kind, node, name, other, child, offset, bytes, time, durable] = changes_[change];
  return base::format("{} ({} node {} {} {} at {}, {} bytes)", change,
                      kinds[static_cast<std::size_t>(kind)], node, name, other, offset,
                      bytes.size());
}

std::vector<RecordedStorage::State> RecordedStorage::states(int random_choices,
                                                            std::uint32_t seed) const {
  std::vector<State> states;
  std::set<std::pair<std::vector<bool>, int>> seen;
  std::mt19937 random(seed);
  for (int cut = 0; cut <= time_; ++cut) {
    State all{std::vector<bool>(changes_.size()), -1, 0, base::format("cut at {}", cut)};
    all.root_syncs = static_cast<int>(
        std::count_if(root_syncs_.begin(), root_syncs_.end(), [cut](int at) { return at <= cut; }));
    std::vector<std::size_t> pending;
    for (std::size_t i = 0; i < changes_.size() && changes_[i].time <= cut; ++i) {
      all.applied[i] = true;
      if (changes_[i].durable > cut) pending.push_back(i);
    }
    const auto keep = [&](State state) {
      if (seen.emplace(state.applied, state.torn).second) states.push_back(std::move(state));
    };
    auto none = all;
    none.text += ", nothing that is not durable";
    for (const auto i : pending) none.applied[i] = false;
    keep(all);
    keep(none);
    for (const auto i : pending) {
      auto without = all;
      without.applied[i] = false;
      without.text += ", without " + text_of(i);
      keep(without);
      auto alone = none;
      alone.applied[i] = true;
      alone.text += ", but " + text_of(i);
      keep(alone);
      if (changes_[i].bytes.size() < 2) continue;
      auto torn = all;
      torn.torn = static_cast<int>(i);
      torn.text += ", half of " + text_of(i);
      keep(torn);
    }
    for (int choice = 0; choice < random_choices && pending.size() > 2; ++choice) {
      auto some = all;
      some.text += base::format(", random choice {}", choice);
      for (const auto i : pending) some.applied[i] = random() % 2 == 0;
      keep(some);
    }
  }
  return states;
}

void RecordedStorage::build(const State& state, const fs::path& to) const {
  Names names;
  for (const auto& node : nodes_) names.push_back(node.names);
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    if (state.applied[i]) apply(changes_[i], names);
  }
  write_folder(0, state, names, to);
}

void RecordedStorage::write_folder(int node, const State& state, const Names& names,
                                   const fs::path& to) const {
  fs::create_directory(to);
  for (const auto& [name, child] : names[static_cast<std::size_t>(node)]) {
    if (nodes_[static_cast<std::size_t>(child)].folder) {
      write_folder(child, state, names, to / name);
    } else {
      write_file(child, state, to / name);
    }
  }
}

void RecordedStorage::write_file(int node, const State& state, const fs::path& to) const {
  const auto& original = nodes_[static_cast<std::size_t>(node)].original;
  if (!original.empty()) return fs::create_hard_link(original, to);
  std::ofstream stream(to, std::ios::binary);
  std::uint64_t length = 0;
  for (std::size_t i = 0; i < changes_.size(); ++i) {
    const auto& change = changes_[i];
    if (change.node != node || !state.applied[i]) continue;
    if (change.kind == Change::Kind::resize) {
      length = std::max(length, change.offset);
    } else if (change.kind == Change::Kind::write) {
      const auto whole = change.bytes.size();
      const auto count = state.torn == static_cast<int>(i) ? whole / 2 : whole;
      stream.seekp(static_cast<std::streamoff>(change.offset));
      stream.write(reinterpret_cast<const char*>(change.bytes.data()),
                   static_cast<std::streamsize>(count));
      length = std::max(length, change.offset + count);
    }
  }
  stream.close();
  fs::resize_file(to, length);
}

}  // namespace trireme::tests
