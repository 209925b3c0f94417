// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"

#include <chrono>
#include <cstdint>
#include <vector>

namespace trireme::comm {

/// Sockets that are waited for together (epoll): a look costs what is ready, not what is waited
/// for. Closed ones are no longer in it.
class SocketSet {
 public:
  SocketSet();
  /// False where the system has no room for one more.
  bool add(const base::File& socket, std::uint64_t key) const;
  void remove(const base::File& socket) const;
  /// Keys of sockets that can be read from, or have ended; of some of them where they are many.
  /// Waits for the first so long.
  std::vector<std::uint64_t> ready(std::chrono::milliseconds limit) const;

 private:
  base::File epoll_;
};

}  // namespace trireme::comm
