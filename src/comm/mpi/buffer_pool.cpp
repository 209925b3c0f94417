// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/buffer_pool.hpp"

#include <algorithm>
#include <new>

namespace trireme::comm {

BufferPool::Lease BufferPool::take(std::size_t bytes) {
  Lease lease;
  lease.pool_ = this;
  const auto fits = std::find_if(free_.begin(), free_.end(),
                                 [&](const auto& buffer) { return buffer.bytes >= bytes; });
  if (fits != free_.end()) {
    lease.buffer_ = std::move(*fits);
    free_.erase(fits);
    return lease;
  }
  // A buffer that was too small is replaced, so that the pool holds no more than was ever in use.
  if (!free_.empty()) free_.pop_back();
  const auto rounded = (bytes + alignment) / alignment * alignment;
  lease.buffer_.data.reset(static_cast<std::byte*>(std::aligned_alloc(alignment, rounded)));
  if (!lease.buffer_.data) throw std::bad_alloc();
  lease.buffer_.bytes = rounded;
  return lease;
}

}  // namespace trireme::comm
