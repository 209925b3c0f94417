// SPDX-License-Identifier: Apache-2.0
// A file system in memory that loses at a power cut what was not synced, for tests.
//
// usage: volatile_fs FROM TO MOUNTPOINT [--lose-file-syncs] [--slow-reads MS] [--slow-syncs MS]
//
// It begins with what is in FROM, as durable. Writing a number to MOUNTPOINT/.power-cut cuts the
// power: of every change that no sync has covered, the number's dice decide whether it has reached
// the disk; the result is written to TO, and every later call fails with EIO. Names are made
// durable by a sync of their folder, data by a sync of their file; with --lose-file-syncs only once
// eight more files were synced, as on a disk whose cache is volatile and whose flushes are lies.
// Slow calls take so many milliseconds each; where reads are slow, the system soon forgets what was
// read, as with files that do not fit in memory.
#define FUSE_USE_VERSION 34
#include "volatile_storage.hpp"

#include <fuse.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <thread>
#include <vector>

namespace {

using namespace volatile_storage;

struct Options {
  bool lose_file_syncs = false;
  std::chrono::milliseconds slow_reads{0};
  std::chrono::milliseconds slow_syncs{0};
};
Options& options() {
  static Options all;
  return all;
}

/// Takes what follows the folders. False where that is not as the usage says.
bool take_options(const std::vector<std::string>& words) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    if (*word == "--lose-file-syncs") {
      options().lose_file_syncs = true;
      continue;
    }
    const bool reads = *word == "--slow-reads";
    if ((!reads && *word != "--slow-syncs") || ++word == words.end()) return false;
    (reads ? options().slow_reads : options().slow_syncs) =
        std::chrono::milliseconds(std::strtoul(word->c_str(), nullptr, 10));
  }
  return true;
}

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
    std::this_thread::sleep_for(options().slow_reads);
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
    std::this_thread::sleep_for(options().slow_syncs);
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

/// The files that were there at first are dropped from the system's cache, until the program ends.
void forget_again_and_again(fuse* system) {
  std::vector<std::string> paths;
  for (const auto& [name, child] : storage().node(0).names)
    paths.push_back(std::string("/").append(name));
  std::thread([system, paths] {
    for (;;) {
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      for (const auto& path : paths) fuse_invalidate_path(system, path.c_str());
    }
  }).detach();
}

fuse_operations operations() {
  fuse_operations calls{};
  calls.init = [](fuse_conn_info* connection, fuse_config*) {
    const auto* const context = fuse_get_context();
    if (options().slow_reads.count() > 0) {
      // Each page is a read of its own.
      connection->max_readahead = 0;
      forget_again_and_again(context->fuse);
    }
    return context->private_data;
  };
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
  if (arguments.size() < 4 || !take_options({arguments.begin() + 4, arguments.end()})) {
    std::fprintf(stderr,
                 "usage: volatile_fs FROM TO MOUNTPOINT [--lose-file-syncs] [--slow-reads MS] "
                 "[--slow-syncs MS]\n");
    return 2;
  }
  Storage storage(arguments[1], arguments[2], options().lose_file_syncs);
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
