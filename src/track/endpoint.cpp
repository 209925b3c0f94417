// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/endpoint.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/thread_priority.hpp"

#include <httplib.h>
#include <signal.h>

#include <chrono>
#include <thread>

namespace trireme::track {
namespace {

constexpr const char* text_format = "text/plain; version=0.0.4; charset=utf-8";
/// A scrape has no body.
constexpr std::size_t max_body_bytes = 1024;
/// What keeps the one thread from the next scrape.
constexpr std::time_t patience_seconds = 2;

}  // namespace

struct Endpoint::Server {
  httplib::Server http;
  int port = 0;
  std::thread thread;
};

Endpoint::Endpoint(const Options& options, Text text) : server_(std::make_unique<Server>()) {
  auto& http = server_->http;
  http.new_task_queue = [] { return new httplib::ThreadPool(1); };
  http.set_payload_max_length(max_body_bytes);
  http.set_read_timeout(patience_seconds, 0);
  http.set_write_timeout(patience_seconds, 0);
  http.set_keep_alive_max_count(1);
  const auto wanted = "Bearer " + options.token;
  http.Get("/metrics", [wanted, text = std::move(text)](const httplib::Request& request,
                                                        httplib::Response& response) {
    if (!base::equal_secrets(request.get_header_value("Authorization"), wanted)) {
      response.status = 401;
      response.set_header("WWW-Authenticate", "Bearer");
      response.set_content("the run's token is missing: RUN/track/prometheus.token\n",
                           "text/plain");
      return;
    }
    response.set_content(text(), text_format);
  });
  auto& port = server_->port;
  if (options.port != 0 && http.bind_to_port(options.address, options.port)) {
    port = options.port;
  } else {
    port = http.bind_to_any_port(options.address);
  }
  if (port <= 0) {
    throw base::Error(base::ExitCode::launch,
                      base::format("nothing can listen at {} for Prometheus; set "
                                   "track.prometheus_interface to an interface of this host, or "
                                   "track.prometheus_port = 0",
                                   options.address));
  }
  // Signals are for the threads that wait for them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  server_->thread = std::thread([server = server_.get()] {
    base::BackgroundPriority priority;
    priority.yield();
    server->http.listen_after_bind();
  });
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  // Order: stop() has no effect before.
  while (!http.is_running()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Endpoint::~Endpoint() {
  server_->http.stop();
  server_->thread.join();
}

std::uint16_t Endpoint::port() const {
  return static_cast<std::uint16_t>(server_->port);
}

}  // namespace trireme::track
