// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/process_group.hpp"

#include <cstddef>
#include <memory>

namespace trireme::comm {

/// Memory that all ranks of a process group on one node map. It never has a name in a file
/// system, so nothing of it is left when ranks die.
class SharedMemory {
 public:
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  /// Collective over the group: zeroed memory, or on every rank the same reason why not.
  static base::Result<std::unique_ptr<SharedMemory>> create(ProcessGroup& group, std::size_t bytes);

  std::byte* data() const { return data_; }
  std::size_t bytes() const { return bytes_; }

 private:
  SharedMemory(std::byte* data, std::size_t bytes) : data_(data), bytes_(bytes) {}

  std::byte* data_;
  std::size_t bytes_;
};

}  // namespace trireme::comm
