// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdlib>
#include <memory>
#include <utility>
#include <vector>

namespace trireme::comm {

/// Buffers for parts that arrive from peers, kept for the next operation: their pages stay warm.
class BufferPool {
 public:
  static constexpr std::size_t alignment = 64;

  /// Lease of a buffer, which returns to the pool at its end.
  class Lease {
   public:
    Lease() = default;
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    Lease(Lease&& other) noexcept
        : pool_(std::exchange(other.pool_, nullptr)), buffer_(std::move(other.buffer_)) {}
    Lease& operator=(Lease&& other) noexcept {
      std::swap(pool_, other.pool_);
      std::swap(buffer_, other.buffer_);
      return *this;
    }
    ~Lease() {
      if (pool_ != nullptr) pool_->free_.push_back(std::move(buffer_));
    }
    std::byte* data() const { return buffer_.data.get(); }

   private:
    friend class BufferPool;
    struct Free {
      void operator()(std::byte* data) const { std::free(data); }
    };
    struct Buffer {
      std::unique_ptr<std::byte, Free> data;
      std::size_t bytes = 0;
    };
    BufferPool* pool_ = nullptr;
    Buffer buffer_;
  };

  Lease take(std::size_t bytes);

 private:
  std::vector<Lease::Buffer> free_;
};

}  // namespace trireme::comm
