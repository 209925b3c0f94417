// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace trireme::web {

/// HTTP server of one page, GET and for who has its token, on a thread of the lowest priority: a
/// request costs the program next to nothing.
class Server {
 public:
  struct Options {
    /// Address of this host, without a port; nothing else is listened at.
    std::string address;
    /// Taken if it is free, else the system chooses one.
    std::uint16_t port = 0;
    std::string token;
    /// A connection that has not sent its request by then is closed.
    std::chrono::milliseconds request_limit{1'000};
  };
  struct Page {
    std::string path;  ///< "/metrics"
    std::string content_type;
    /// Called on the server's thread, by one request at a time; its exceptions are answered with
    /// 500.
    std::function<std::string()> text;
    /// Answered with 401 to who does not send the token.
    std::string refusal;
  };

  /// Null when nothing can listen at the address.
  static std::unique_ptr<Server> start(const Options& options, Page page);
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;
  /// Ends the thread; waits for a request that is being answered.
  ~Server();

  std::uint16_t port() const;

 private:
  struct Loop;
  explicit Server(std::unique_ptr<Loop> loop);
  std::unique_ptr<Loop> loop_;
};

}  // namespace trireme::web
