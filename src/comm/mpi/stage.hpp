// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <functional>
#include <span>
#include <vector>

namespace trireme::comm {

/// One send, one receive, or both, with ranks of the communicator; -1 for none.
struct SendReceive {
  int to = -1;
  std::span<const std::byte> send;
  int from = -1;
  std::span<std::byte> receive;
};

/// Messages, and the computation after all of them have come.
struct Stage {
  std::vector<SendReceive> steps;
  std::function<void()> finish;
  /// Messages of this stage may start before the previous stage has finished computing.
  bool early = false;
};

}  // namespace trireme::comm
