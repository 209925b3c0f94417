// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/store/object_store.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <span>
#include <vector>

namespace trireme::checkpoint {

/// File of a step as an object whose bytes arrive in any order: each part of an upload is sent when
/// it is whole. Nothing of it stays unless it is finished.
class ObjectFile {
 public:
  /// Throws Error (checkpoint): larger than an object may be.
  ObjectFile(const std::filesystem::path& url, std::uint64_t bytes);

  /// Threads may write different ranges; one that completes a part sends it. Memory holds the parts
  /// that are incomplete, of store::part_bytes each. Throws StoreError.
  void write(std::span<const std::byte> bytes, std::uint64_t offset);
  /// Some bytes will never come: writes that wait for those before theirs, and all after, throw.
  void abandon();
  /// All bytes are written.
  void finish();

 private:
  struct Part {
    std::vector<std::byte> memory;
    std::size_t filled = 0;
  };
  std::size_t bytes_of(std::size_t part) const;
  void send(std::size_t part, std::span<const std::byte> bytes);

  store::Location at_;
  std::uint64_t bytes_;
  std::unique_ptr<store::Upload> upload_;
  std::mutex mutex_;
  std::map<std::size_t, Part> parts_;
};

}  // namespace trireme::checkpoint
