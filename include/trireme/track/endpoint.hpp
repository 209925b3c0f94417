// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/web/server.hpp"

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

namespace trireme::track {

/// Files of a run directory: the list of nodes for file_sd, and the token that a scrape must send.
inline constexpr const char* prometheus_targets = "track/prometheus.targets.json";
inline constexpr const char* prometheus_token = "track/prometheus.token";
/// Metric of each rank by which people, and `trireme watch`, find the slowest ones.
inline constexpr std::string_view rank_computing_metric = "trireme_rank_computing_seconds";

/// GET /metrics for Prometheus: a scrape costs a step next to nothing. Whoever does not send the
/// token gets 401.
class Endpoint {
 public:
  /// `text` is called on the server's thread, by one scrape at a time; its exceptions are answered
  /// with 500. Throws Error (launch) when the address cannot be listened at.
  Endpoint(const web::Server::Options& options, std::function<std::string()> text);

  std::uint16_t port() const { return server_->port(); }

 private:
  std::unique_ptr<web::Server> server_;
};

}  // namespace trireme::track
