// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/file_system.hpp"

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>

namespace trireme::checkpoint {

/// A file of a step being written: in a folder, or in an object store. Every step is checked; what
/// fails throws Error (checkpoint).
class StepOutput {
 public:
  virtual ~StepOutput() = default;

  /// Threads may write different ranges; long ones are fast.
  virtual void write(std::span<const std::byte> bytes, std::uint64_t offset) = 0;
  /// The same of bytes that are zeros for the most part: a file is not given them, as it reads as
  /// zeros where nothing was written.
  virtual void write_sparse(std::span<const std::byte> bytes, std::uint64_t offset) = 0;
  /// Some bytes will never come: writes that wait for those before theirs, and all after, throw.
  virtual void abandon() = 0;
  /// Every byte is written: it is durable afterwards.
  virtual void finish() = 0;
};

/// A new file of so many bytes, all of which are then written.
std::unique_ptr<StepOutput> create_output(FileSystem& files, const std::filesystem::path& path,
                                          std::uint64_t bytes);

}  // namespace trireme::checkpoint
