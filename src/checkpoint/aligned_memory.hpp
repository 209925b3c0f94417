// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/checkpoint/output_file.hpp"

#include <sys/mman.h>

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
      // A transfer between the disk and small pages is cut into many requests. Without large pages,
      // it is slower.
      ::madvise(memory_.get(), bytes, MADV_HUGEPAGE);
      bytes_ = bytes;
    }
    return memory_.get();
  }

 private:
  static constexpr std::size_t large_page = std::size_t{2} << 20;
  static_assert(large_page % OutputFile::direct_alignment == 0);
  static constexpr std::align_val_t alignment{large_page};
  struct Free {
    void operator()(std::byte* memory) const { ::operator delete(memory, alignment); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::size_t bytes_ = 0;
};

}  // namespace trireme::checkpoint
