// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/library_version.hpp"

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Objects that a server stores under names: written whole, read by ranges.
namespace trireme::store {

/// Refusal of a server, ExitCode::checkpoint. Calls have tried again for as long as their store's
/// patience what may pass (src/store/may_pass.cpp).
class StoreError : public base::Error {
 public:
  StoreError(const std::string& text, bool may_pass)
      : Error(base::ExitCode::checkpoint, text), may_pass_(may_pass) {}
  /// It may work later: nothing is known to be wrong with the objects.
  bool may_pass() const { return may_pass_; }

 private:
  bool may_pass_;
};

/// Names below a prefix that ends with '/'.
struct Listing {
  struct Object {
    std::string name;  ///< without the prefix
    std::uint64_t bytes = 0;
  };
  std::vector<Object> objects;
  /// Next parts of the names that go on with '/'; of a listing that is not deep.
  std::vector<std::string> folders;
  /// When the last of these objects was written, by the server's clock; nothing if no object tells.
  std::optional<std::chrono::system_clock::time_point> newest;
};
enum class Depth { one, all };

enum class Existing { replace, keep };

/// One object of a name that no other has had, written in parts. Destroyed unfinished, nothing of
/// it stays.
class Upload {
 public:
  virtual ~Upload() = default;
  /// Part from byte `number` * part_bytes of the object on; all but the last have that length.
  /// Threads may write different parts.
  virtual void write(std::size_t number, std::span<const std::byte> bytes) = 0;
  /// Some part will never come: writes that wait for it, and all after, throw. Any thread may say
  /// so while others write.
  virtual void abandon() = 0;
  /// All parts, from 0 on, are written: the object gets its name. One whose answer was lost is
  /// known by the object's length.
  virtual void finish() = 0;
};

/// Calls throw StoreError, which names the object's URL, and may be made from several threads.
class ObjectStore {
 public:
  virtual ~ObjectStore() = default;

  virtual Listing list(std::string_view prefix, Depth depth) = 0;
  /// Length in bytes; nothing if there is no such object.
  virtual std::optional<std::uint64_t> size(std::string_view name) = 0;
  /// Reads all bytes of the buffer, which the object has.
  virtual void read(std::string_view name, std::span<std::byte> bytes, std::uint64_t offset) = 0;
  /// Whole object at once. False if it was there and is to be kept: of two who write it at the same
  /// time one has true, on servers that know conditional writes.
  virtual bool put(std::string_view name, std::span<const std::byte> bytes, Existing existing) = 0;
  virtual std::unique_ptr<Upload> upload(std::string_view name) = 0;
  /// Objects that are not there count as removed.
  virtual void remove(const std::vector<std::string>& names) = 0;
  /// Removes what uploads below a prefix have left whose process was killed, and folders that have
  /// nothing in them. Nobody uploads there.
  virtual void remove_unfinished(std::string_view prefix) = 0;
};

/// Bytes of a part of an upload, and the most parts that it may have (S3's limit).
inline constexpr std::size_t part_bytes = std::size_t{16} << 20;
inline constexpr std::size_t max_parts = 10'000;

/// Place of an object: its store, and its name there.
struct Location {
  std::shared_ptr<ObjectStore> store;
  std::string name;
};

/// True for "s3://BUCKET/NAME", "webhdfs://HOST:PORT/PATH" and "swebhdfs://...". A path with such a
/// name is never one of a file system: paths keep both slashes.
bool is_url(const std::filesystem::path& path);
/// Stores are opened once in a process. Throws Error (usage): not a URL of a known kind,
/// credentials are missing or may be read by others.
Location locate(const std::filesystem::path& url);

/// From where credentials, region and endpoint are taken: called once, before the first store is
/// opened.
void use_environment(base::Environment environment);

std::vector<base::LibraryVersion> library_versions();

}  // namespace trireme::store
