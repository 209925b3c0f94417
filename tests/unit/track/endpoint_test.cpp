// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/endpoint.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/tcp.hpp"
#include "trireme/store/http.hpp"

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

namespace trireme::track {
namespace {

std::size_t open_descriptors() {
  const std::filesystem::directory_iterator all("/proc/self/fd");
  return static_cast<std::size_t>(std::distance(begin(all), end(all)));
}

base::File connect_to(const Endpoint& endpoint) {
  base::tcp::SocketAddress address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  base::tcp::set_port(address, endpoint.port());
  auto socket = base::value_or_throw(base::tcp::begin_connect(address));
  pollfd connected{socket.get(), POLLOUT, 0};
  REQUIRE(::poll(&connected, 1, 10'000) == 1);
  return socket;
}

store::HttpResponse scrape(const Endpoint& endpoint, std::string_view token) {
  store::HttpClient client;
  return client.perform({.url = base::format("http://127.0.0.1:{}/metrics", endpoint.port()),
                         .headers = {base::format("Authorization: Bearer {}", token)}});
}

/// Closes no connection for being slow, however busy the machine is.
std::unique_ptr<Endpoint> patient_endpoint() {
  return std::make_unique<Endpoint>(
      Endpoint::Options{
          .address = "127.0.0.1", .token = "secret", .request_limit = std::chrono::hours(1)},
      [] { return "loss 1\n"; });
}

}  // namespace

TEST_CASE("connections that say nothing hold neither scrapes nor descriptors") {
  const auto endpoint = patient_endpoint();
  const auto before = open_descriptors();
  std::vector<base::File> idle;
  constexpr std::size_t count = 300;
  for (std::size_t at = 0; at < count; ++at) {
    idle.push_back(connect_to(*endpoint));
    // Part of a request is no request.
    if (at % 2 == 0) CHECK(::send(idle.back().get(), "GET /metrics", 12, MSG_NOSIGNAL) == 12);
  }
  const auto answer = scrape(*endpoint, "secret");
  CHECK(answer.status == 200);
  CHECK(answer.text == "loss 1\n");
  // Those who connected before were taken, in their order, and all but sixteen given up.
  CHECK(open_descriptors() - before - idle.size() <= 16);
  CHECK(scrape(*endpoint, "wrong").status == 401);
}

TEST_CASE("an endpoint reads requests of any length up to a limit, in pieces") {
  const auto endpoint = patient_endpoint();
  const auto socket = connect_to(*endpoint);
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

  const auto endless = connect_to(*endpoint);
  const std::string letters(16'384, 'a');
  ::send(endless.get(), letters.data(), letters.size(), MSG_NOSIGNAL);
  pollfd closed{endless.get(), POLLIN, 0};
  REQUIRE(::poll(&closed, 1, 60'000) == 1);
  char none = 0;
  CHECK(::recv(endless.get(), &none, 1, 0) <= 0);
}

TEST_CASE("an endpoint closes a connection whose request does not come in time") {
  const Endpoint endpoint(
      {.address = "127.0.0.1", .token = "secret", .request_limit = std::chrono::milliseconds(1)},
      [] { return ""; });
  const auto idle = connect_to(endpoint);
  pollfd closed{idle.get(), POLLIN, 0};
  REQUIRE(::poll(&closed, 1, 60'000) == 1);
  char none = 0;
  CHECK(::recv(idle.get(), &none, 1, 0) == 0);
}

TEST_CASE("an endpoint whose port is taken listens at another one") {
  const Endpoint first({.address = "127.0.0.1", .token = "secret"}, [] { return ""; });
  const Endpoint second({.address = "127.0.0.1", .port = first.port(), .token = "secret"},
                        [] { return ""; });
  CHECK(second.port() != first.port());
  CHECK(second.port() != 0);
}

}  // namespace trireme::track
