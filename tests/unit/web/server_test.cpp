// SPDX-License-Identifier: Apache-2.0
#include "trireme/web/server.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/tcp.hpp"
#include "trireme/web/http.hpp"

#include <catch2/catch.hpp>
#include <poll.h>
#include <sys/socket.h>

#include <chrono>
#include <cstddef>
#include <filesystem>
#include <iterator>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::web {
namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

base::File connect_to(const Server& server) {
  base::tcp::SocketAddress address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  base::tcp::set_port(address, server.port());
  auto socket = base::value_or_throw(base::tcp::begin_connect(address));
  pollfd connected{socket.get(), POLLOUT, 0};
  REQUIRE(::poll(&connected, 1, 10'000) == 1);
  return socket;
}

HttpResponse scrape(const Server& server, std::string_view token) {
  HttpClient client;
  return client.perform({.url = base::format("http://127.0.0.1:{}/metrics", server.port()),
                         .headers = {base::format("Authorization: Bearer {}", token)}});
}

std::unique_ptr<Server> started(std::chrono::milliseconds request_limit, std::uint16_t port = 0) {
  auto server = Server::start(
      {.address = "127.0.0.1", .port = port, .token = "secret", .request_limit = request_limit},
      {.path = "/metrics",
       .content_type = "text/plain",
       .text = [] { return "loss 1\n"; },
       .refusal = "who are you?"});
  REQUIRE(server);
  return server;
}

/// Closes no connection for being slow, however busy the machine is.
std::unique_ptr<Server> patient_server() {
  return started(std::chrono::hours(1));
}

}  // namespace

TEST_CASE("connections that say nothing hold neither scrapes nor descriptors") {
  const auto server = patient_server();
  const auto before = open_descriptors();
  std::vector<base::File> idle;
  constexpr std::size_t count = 300;
  for (std::size_t at = 0; at < count; ++at) {
    idle.push_back(connect_to(*server));
    // Part of a request is no request.
    if (at % 2 == 0) CHECK(::send(idle.back().get(), "GET /metrics", 12, MSG_NOSIGNAL) == 12);
  }
  const auto answer = scrape(*server, "secret");
  CHECK(answer.status == 200);
  CHECK(answer.text == "loss 1\n");
  // Those who connected before were taken, in their order, and all but sixteen given up.
  CHECK(open_descriptors() - before - idle.size() <= 16);
  const auto refused = scrape(*server, "wrong");
  CHECK(refused.status == 401);
  CHECK(refused.text == "who are you?");
}

TEST_CASE("a server reads requests of any length up to a limit, in pieces") {
  const auto server = patient_server();
  const auto socket = connect_to(*server);
  for (const std::string_view part :
       {"GET /metrics HT", "TP/1.1\r\nAuthorization: Bear", "er secret\r\n", "\r\n"}) {
    CHECK(::send(socket.get(), part.data(), part.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(part.size()));
  }
  std::string text(4096, '\0');
  pollfd readable{socket.get(), POLLIN, 0};
  REQUIRE(::poll(&readable, 1, 60'000) == 1);
  text.resize(static_cast<std::size_t>(::recv(socket.get(), text.data(), text.size(), 0)));
  CHECK(text.starts_with("HTTP/1.1 200"));
  CHECK(text.ends_with("loss 1\n"));

  const auto endless = connect_to(*server);
  const std::string letters(16'384, 'a');
  ::send(endless.get(), letters.data(), letters.size(), MSG_NOSIGNAL);
  pollfd closed{endless.get(), POLLIN, 0};
  REQUIRE(::poll(&closed, 1, 60'000) == 1);
  char none = 0;
  CHECK(::recv(endless.get(), &none, 1, 0) <= 0);
}

TEST_CASE("a server closes a connection whose request does not come in time") {
  const auto server = started(std::chrono::milliseconds(1));
  const auto idle = connect_to(*server);
  pollfd closed{idle.get(), POLLIN, 0};
  REQUIRE(::poll(&closed, 1, 60'000) == 1);
  char none = 0;
  CHECK(::recv(idle.get(), &none, 1, 0) == 0);
}

TEST_CASE("a server whose port is taken listens at another one") {
  const auto first = patient_server();
  const auto second = started(std::chrono::hours(1), first->port());
  CHECK(second->port() != first->port());
  CHECK(second->port() != 0);
}

TEST_CASE("an address that is none of this host's is not listened at") {
  CHECK(Server::start({.address = "192.0.2.1", .token = "secret"}, {}) == nullptr);
}

}  // namespace trireme::web
