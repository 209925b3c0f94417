// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>

namespace trireme::track {

/// HTTP server of GET /metrics for Prometheus, on a thread of the lowest priority: a scrape costs a
/// step next to nothing. Whoever does not send the token gets 401.
class Endpoint {
 public:
  struct Options {
    /// Of this host, without a port; nothing else is listened at.
    std::string address;
    /// Taken if it is free, else the system chooses one.
    std::uint16_t port = 0;
    std::string token;
  };
  using Text = std::function<std::string()>;

  /// `text` is called on the server's thread, by one scrape at a time; its exceptions are answered
  /// with 500. Throws Error (launch) when the address cannot be listened at.
  Endpoint(const Options& options, Text text);
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;
  /// Ends the thread; waits for a scrape that is being answered.
  ~Endpoint();

  std::uint16_t port() const;

 private:
  struct Server;
  std::unique_ptr<Server> server_;
};

}  // namespace trireme::track
