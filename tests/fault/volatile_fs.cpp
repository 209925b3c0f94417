// SPDX-License-Identifier: Apache-2.0
// A file system in memory that loses at a power cut what was not synced, for tests.
//
// usage: volatile_fs FROM TO MOUNTPOINT [--lose-file-syncs]
//
// It begins with what is in FROM, as durable. Writing a number to MOUNTPOINT/.power-cut cuts the
// power: of every change that no sync has covered, the number's dice decide whether it has reached
// the disk; the result is written to TO, and every later call fails with EIO. Names are made
// durable by a sync of their folder, data by a sync of their file; with --lose-file-syncs only once
// eight more files were synced, as on a disk whose cache is volatile and whose flushes are lies.
#define FUSE_USE_VERSION 34
#include <fuse.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <random>
#include <string>
#include <string_view>
#include <vector>

namespace fs = std::filesystem;

namespace {

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

Storage& storage() {
  return *static_cast<Storage*>(fuse_get_context()->private_data);
}

/// Runs `act(node)` on the node of a path, or of an open file.
template <typename Act>
int with_node(const char* path, const fuse_file_info* info, const Act& act) {
  if (storage().is_off()) return -EIO;
  const long node = info != nullptr ? static_cast<long>(info->fh) : storage().find(path);
  if (node < 0) return static_cast<int>(node);
  return act(static_cast<std::size_t>(node));
}
template <typename Act>
int with_parent(const char* path, const Act& act) {
  if (storage().is_off()) return -EIO;
  const long parent = storage().parent_of(path);
  if (parent < 0) return static_cast<int>(parent);
  return act(static_cast<std::size_t>(parent), Storage::name_of(path));
}

int get_attributes(const char* path, struct stat* facts, fuse_file_info* info) {
  return with_node(path, info, [&](std::size_t number) {
    const auto& node = storage().node(number);
    *facts = {};
    facts->st_ino = number + 1;
    facts->st_mode = (node.folder ? S_IFDIR : S_IFREG) | node.mode;
    facts->st_nlink = node.folder ? 2 : 1;
    facts->st_size = static_cast<off_t>(node.data.size());
    facts->st_mtim = facts->st_ctim = facts->st_atim = node.modified;
    return 0;
  });
}

int read_folder(const char* path, void* buffer, fuse_fill_dir_t fill, off_t, fuse_file_info*,
                fuse_readdir_flags) {
  return with_node(path, nullptr, [&](std::size_t number) {
    for (const char* name : {".", ".."}) fill(buffer, name, nullptr, 0, {});
    for (const auto& [name, child] : storage().node(number).names) {
      fill(buffer, name.c_str(), nullptr, 0, {});
    }
    return 0;
  });
}

int add_node(const char* path, mode_t mode, bool folder, fuse_file_info* info) {
  return with_parent(path, [&](std::size_t parent, const std::string& name) {
    if (storage().node(parent).names.contains(name)) return -EEXIST;
    const auto number = storage().make(folder, mode);
    if (info != nullptr) info->fh = number;
    storage().change(parent, NameChange{{{name, number}}, {}});
    return 0;
  });
}

int open_node(const char* path, fuse_file_info* info) {
  return with_node(path, nullptr, [&](std::size_t number) {
    info->fh = number;
    return 0;
  });
}

int read_data(const char* path, char* to, size_t size, off_t offset, fuse_file_info* info) {
  return with_node(path, info, [&](std::size_t number) {
    const auto& data = storage().node(number).data;
    const auto begin = std::min(static_cast<std::size_t>(offset), data.size());
    return static_cast<int>(data.copy(to, size, begin));
  });
}

int write_data(const char* path, const char* from, size_t size, off_t offset,
               fuse_file_info* info) {
  if (path != nullptr && path == cut_name) {
    const std::string dice(from, size);
    storage().cut_power(static_cast<unsigned>(std::strtoul(dice.c_str(), nullptr, 10)));
    return static_cast<int>(size);
  }
  return with_node(path, info, [&](std::size_t number) {
    storage().change(number, DataChange{static_cast<std::size_t>(offset), {from, size}, false});
    return static_cast<int>(size);
  });
}

int set_length(const char* path, off_t length, fuse_file_info* info) {
  return with_node(path, info, [&](std::size_t number) {
    storage().change(number, DataChange{static_cast<std::size_t>(length), {}, true});
    return 0;
  });
}

int reserve(const char* path, int mode, off_t offset, off_t length, fuse_file_info* info) {
  if (mode != 0) return -EOPNOTSUPP;
  return with_node(path, info, [&](std::size_t number) {
    const auto end = static_cast<std::size_t>(offset + length);
    if (storage().node(number).data.size() < end) {
      storage().change(number, DataChange{end, {}, true});
    }
    return 0;
  });
}

int remove_name(const char* path) {
  return with_parent(path, [&](std::size_t parent, const std::string& name) {
    if (!storage().node(parent).names.contains(name)) return -ENOENT;
    storage().change(parent, NameChange{{}, {name}});
    return 0;
  });
}
int remove_folder(const char* path) {
  const int full = with_node(path, nullptr, [](std::size_t number) {
    return storage().node(number).names.empty() ? 0 : -ENOTEMPTY;
  });
  return full != 0 ? full : remove_name(path);
}

int rename_node(const char* from, const char* to, unsigned flags) {
  return with_parent(from, [&](std::size_t source, const std::string& name) {
    return with_parent(to, [&](std::size_t target, const std::string& other) {
      auto& names = storage().node(source).names;
      const auto moved = names.find(name);
      if (moved == names.end()) return -ENOENT;
      const auto number = moved->second;
      if (source != target) return -EXDEV;
      const auto there = names.find(other);
      if ((flags & RENAME_NOREPLACE) != 0 && there != names.end()) return -EEXIST;
      if ((flags & RENAME_EXCHANGE) == 0) {
        storage().change(source, NameChange{{{other, number}}, {name}});
      } else if (there == names.end()) {
        return -ENOENT;
      } else {
        storage().change(source, NameChange{{{other, number}, {name, there->second}}, {}});
      }
      return 0;
    });
  });
}

int sync_node(const char* path, int, fuse_file_info* info) {
  return with_node(path, info, [](std::size_t number) {
    storage().sync(number);
    return 0;
  });
}

int set_mode(const char* path, mode_t mode, fuse_file_info* info) {
  return with_node(path, info, [&](std::size_t number) {
    storage().node(number).mode = mode & 07777;
    return 0;
  });
}
int set_times(const char* path, const timespec times[2], fuse_file_info* info) {
  return with_node(path, info, [&](std::size_t number) {
    if (times[1].tv_nsec != UTIME_OMIT && times[1].tv_nsec != UTIME_NOW) {
      storage().node(number).modified = times[1];
    }
    return 0;
  });
}

fuse_operations operations() {
  fuse_operations calls{};
  calls.getattr = get_attributes;
  calls.readdir = read_folder;
  calls.mkdir = [](const char* path, mode_t mode) { return add_node(path, mode, true, nullptr); };
  calls.create = [](const char* path, mode_t mode, fuse_file_info* info) {
    return add_node(path, mode, false, info);
  };
  calls.open = open_node;
  calls.opendir = open_node;
  calls.read = read_data;
  calls.write = write_data;
  calls.truncate = set_length;
  calls.fallocate = reserve;
  calls.unlink = remove_name;
  calls.rmdir = remove_folder;
  calls.rename = rename_node;
  calls.fsync = sync_node;
  calls.fsyncdir = sync_node;
  calls.chmod = set_mode;
  calls.utimens = set_times;
  return calls;
}

}  // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv, argv + argc);
  if (arguments.size() < 4 || arguments.size() > 5 ||
      (arguments.size() == 5 && arguments[4] != "--lose-file-syncs")) {
    std::fprintf(stderr, "usage: volatile_fs FROM TO MOUNTPOINT [--lose-file-syncs]\n");
    return 2;
  }
  Storage storage(arguments[1], arguments[2], arguments.size() == 5);
  // One thread, in the foreground; every call reaches this program.
  std::vector<std::string> words{arguments[0], arguments[3],
                                 "-f",         "-s",
                                 "-o",         "attr_timeout=0,entry_timeout=0,negative_timeout=0"};
  std::vector<char*> fuse_arguments;
  for (auto& word : words) fuse_arguments.push_back(word.data());
  const auto calls = operations();
  return fuse_main(static_cast<int>(fuse_arguments.size()), fuse_arguments.data(), &calls,
                   &storage);
}
