// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/types.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <ctime>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

/// Files and folders in memory, of which a power cut loses what was not synced.
namespace volatile_storage {

namespace fs = std::filesystem;

/// Written to: cuts the power.
constexpr std::string_view cut_name = "/.power-cut";
constexpr std::size_t root = 0;

/// Change of a file's data: bytes at an offset, or a new length.
struct DataChange {
  std::size_t offset;
  std::string bytes;
  bool sets_length;

  void apply(std::string& data) const {
    if (sets_length) return data.resize(offset);
    if (data.size() < offset + bytes.size()) data.resize(offset + bytes.size());
    std::copy(bytes.begin(), bytes.end(), data.begin() + static_cast<std::ptrdiff_t>(offset));
  }
};

using Names = std::map<std::string, std::size_t>;

/// Change of a folder's names: those that get another node, and those that go.
struct NameChange {
  Names set;
  std::vector<std::string> removed;

  void apply(Names& names) const {
    for (const auto& name : removed) names.erase(name);
    for (const auto& [name, node] : set) names[name] = node;
  }
};

struct Node {
  bool folder = false;
  mode_t mode = 0644;
  timespec modified{};
  std::string data;
  std::string durable_data;
  std::vector<DataChange> data_changes;  // that are not durable
  Names names;
  Names durable_names;
  std::vector<NameChange> name_changes;
};

class Storage {
 public:
  explicit Storage(const fs::path& from, fs::path to, bool loses_file_syncs)
      : to_(std::move(to)), loses_file_syncs_(loses_file_syncs) {
    add(from);
  }

  bool is_off() const { return is_off_; }
  Node& node(std::size_t number) { return nodes_[number]; }

  /// Node of a path; -ENOENT or -ENOTDIR as a negative number.
  long find(std::string_view path) const {
    std::size_t at = root;
    while (!path.empty()) {
      path.remove_prefix(1);
      const auto name = path.substr(0, path.find('/'));
      path.remove_prefix(name.size());
      if (name.empty()) continue;
      if (!nodes_[at].folder) return -ENOTDIR;
      const auto found = nodes_[at].names.find(std::string(name));
      if (found == nodes_[at].names.end()) return -ENOENT;
      at = found->second;
    }
    return static_cast<long>(at);
  }
  long parent_of(std::string_view path) const { return find(path.substr(0, path.rfind('/'))); }
  static std::string name_of(std::string_view path) {
    return std::string(path.substr(path.rfind('/') + 1));
  }

  std::size_t make(bool folder, mode_t mode) {
    auto& node = nodes_.emplace_back();
    node.folder = folder;
    node.mode = mode & 07777;
    touch(node);
    return nodes_.size() - 1;
  }
  void change(std::size_t folder, NameChange change) {
    auto& node = nodes_[folder];
    change.apply(node.names);
    node.name_changes.push_back(std::move(change));
    touch(node);
  }
  void change(std::size_t file, DataChange change) {
    auto& node = nodes_[file];
    change.apply(node.data);
    node.data_changes.push_back(std::move(change));
    touch(node);
  }
  void sync(std::size_t number) {
    auto& node = nodes_[number];
    if (node.folder) {
      node.durable_names = node.names;
      node.name_changes.clear();
    } else {
      synced_.push_back(number);
    }
    const std::size_t cached = loses_file_syncs_ ? 8 : 0;
    for (; synced_.size() > cached; synced_.pop_front()) {
      auto& file = nodes_[synced_.front()];
      file.durable_data = file.data;
      file.data_changes.clear();
    }
  }

  void cut_power(unsigned seed) {
    is_off_ = true;
    std::mt19937 dice(seed);
    write_folder(root, to_, dice);
  }

 private:
  static void touch(Node& node) { std::timespec_get(&node.modified, TIME_UTC); }

  std::size_t add(const fs::path& path) {
    const bool folder = fs::is_directory(path);
    const auto number = make(folder, folder ? 0755 : 0644);
    if (folder) {
      Names names;
      for (const auto& entry : fs::directory_iterator(path)) {
        const auto child = add(entry.path());
        names[entry.path().filename().string()] = child;
      }
      nodes_[number].names = nodes_[number].durable_names = std::move(names);
    } else {
      std::ifstream stream(path, std::ios::binary);
      std::string data{std::istreambuf_iterator<char>(stream), {}};
      nodes_[number].data = nodes_[number].durable_data = std::move(data);
    }
    return number;
  }

  void write_folder(std::size_t number, const fs::path& to, std::mt19937& dice) {
    fs::create_directories(to);
    auto names = nodes_[number].durable_names;
    for (const auto& change : nodes_[number].name_changes) {
      if (dice() % 2 == 0) change.apply(names);
    }
    for (const auto& [name, child] : names) {
      if (name == cut_name.substr(1)) continue;
      if (nodes_[child].folder) {
        write_folder(child, to / name, dice);
      } else {
        write_file(child, to / name, dice);
      }
    }
  }
  void write_file(std::size_t number, const fs::path& to, std::mt19937& dice) {
    auto data = nodes_[number].durable_data;
    for (auto change : nodes_[number].data_changes) {
      const auto fate = dice() % 5;
      if (fate < 2) continue;
      // Torn in the middle.
      if (fate == 2) change.bytes.resize(change.bytes.size() / 2);
      change.apply(data);
    }
    std::ofstream(to, std::ios::binary) << data;
  }

  fs::path to_;
  bool loses_file_syncs_;
  bool is_off_ = false;
  std::deque<std::size_t> synced_;
  std::vector<Node> nodes_;
};

}  // namespace volatile_storage
