// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/endpoint.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

namespace trireme::track {

Endpoint::Endpoint(const web::Server::Options& options, std::function<std::string()> text)
    : server_(web::Server::start(
          options, {.path = "/metrics",
                    .content_type = "text/plain; version=0.0.4; charset=utf-8",
                    .text = std::move(text),
                    .refusal = "the run's token is missing: RUN/track/prometheus.token\n"})) {
  if (server_) return;
  throw base::Error(base::ExitCode::launch,
                    base::format("nothing can listen at {} for Prometheus; set "
                                 "track.prometheus_interface to an interface of this host, or "
                                 "track.prometheus_port = 0",
                                 options.address));
}

}  // namespace trireme::track
