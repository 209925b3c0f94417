// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <span>

namespace trireme::checkpoint {

/// A file of a step being written: in a folder, or in an object store. Every step is checked; what
/// fails throws Error (checkpoint).
class StepOutput {
 public:
  virtual ~StepOutput() = default;

  /// Bytes of HDF5's own; zeros elsewhere.
  virtual void read(std::span<std::byte> bytes, std::uint64_t offset) const = 0;
  /// Threads may write different ranges; long ones are fast.
  virtual void write(std::span<const std::byte> bytes, std::uint64_t offset) = 0;
  /// Every byte is written: it is durable afterwards.
  virtual void finish() = 0;
};

/// A file whose structure `create` makes with HDF5 at the path that it is given.
struct StructuredOutput {
  /// Length of what `create` has made.
  std::uint64_t bytes = 0;
  std::unique_ptr<StepOutput> output;
};
StructuredOutput create_structured(
    FileSystem& files, const std::filesystem::path& path,
    const std::function<void(const std::filesystem::path&)>& create,
    const std::function<std::uint64_t(std::uint64_t bytes)>& stored_bytes);

/// A file of so many bytes, all of which are written to it.
std::unique_ptr<StepOutput> create_copy(FileSystem& files, const std::filesystem::path& path,
                                        std::uint64_t stored_bytes);

}  // namespace trireme::checkpoint
