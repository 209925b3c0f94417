// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <functional>
#include <string>
#include <thread>

namespace trireme::testing {

/// Stands in for the thread of NCCL that answers at its RAS port: a port of this node, where one
/// caller after another is answered.
class RasServer {
 public:
  /// One conversation over a socket of the caller, which is closed when this returns.
  using Conversation = std::function<void(int socket)>;

  explicit RasServer(Conversation conversation);
  RasServer(const RasServer&) = delete;
  RasServer& operator=(const RasServer&) = delete;
  ~RasServer();

  /// "127.0.0.1:41235".
  std::string address() const;
  int callers() const { return callers_; }
  /// For conversations that go on until the test ends.
  bool ends() const { return ends_; }

  /// Speaks the protocol as NCCL does since 2.24, and answers a status with this text.
  static Conversation answering(std::string text);

 private:
  void serve();

  Conversation conversation_;
  int listener_;
  int port_ = 0;
  std::atomic<int> callers_{0};
  std::atomic<bool> ends_{false};
  std::thread thread_;
};

/// One line of a caller without its end; empty when it has gone.
std::string hear_line(int socket);
bool say(int socket, const std::string& text);

}  // namespace trireme::testing
