// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace trireme::track {

/// Of a run directory: the list of nodes for file_sd, and what a scrape must send.
inline constexpr const char* prometheus_targets = "track/prometheus.targets.json";
inline constexpr const char* prometheus_token = "track/prometheus.token";
/// Metric of each rank by which people, and `trireme watch`, find the slowest ones.
inline constexpr std::string_view rank_computing_metric = "trireme_rank_computing_seconds";

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
    /// A connection that has not sent its request by then is closed.
    std::chrono::milliseconds request_limit{1'000};
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
