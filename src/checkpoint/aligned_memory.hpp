// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/output_file.hpp"

#include <cstddef>
#include <memory>
#include <new>

namespace trireme::checkpoint {

/// Memory that files are read into and written from past the system's cache.
class AlignedMemory {
 public:
  /// At least so many bytes, undefined; those that are there already stay.
  std::byte* at_least(std::size_t bytes) {
    if (bytes > bytes_) {
      memory_.reset(static_cast<std::byte*>(::operator new(bytes, alignment)));
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr std::align_val_t alignment{OutputFile::direct_alignment};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace trireme::checkpoint
