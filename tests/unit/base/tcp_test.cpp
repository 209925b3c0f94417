// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/tcp.hpp"

#include "trireme/base/error.hpp"

#include <catch2/catch.hpp>
#include <poll.h>

using namespace trireme;
namespace tcp = base::tcp;

TEST_CASE("a listener accepts who connects, and nobody else is there") {
  tcp::SocketAddress address{};
  address.v4.sin_family = AF_INET;
  address.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto listener = base::value_or_throw(tcp::listen_at(address));
  REQUIRE(tcp::port_of(address) != 0);
  CHECK(tcp::text_of(address) == "127.0.0.1:" + std::to_string(tcp::port_of(address)));
  CHECK_FALSE(base::value_or_throw(tcp::accept_one(listener)));
  const auto caller = base::value_or_throw(tcp::begin_connect(address));
  pollfd waiting{listener.get(), POLLIN, 0};
  REQUIRE(::poll(&waiting, 1, 5000) == 1);
  CHECK(base::value_or_throw(tcp::accept_one(listener)));
  CHECK(tcp::enable_keepalive(caller).ok());
}

TEST_CASE("what the system refuses is a failure that says what was asked") {
  tcp::SocketAddress elsewhere{};
  elsewhere.v4.sin_family = AF_INET;
  elsewhere.v4.sin_addr.s_addr = htonl(0xC0000201U);  // 192.0.2.1, of no host
  const auto refused = tcp::listen_at(elsewhere);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().code == base::ExitCode::peer);
  CHECK(refused.failure().text.starts_with("cannot listen at 192.0.2.1:0: "));
  CHECK_FALSE(tcp::enable_keepalive(base::File{}).ok());
}

TEST_CASE("addresses of interfaces have networks, and none is the loopback's") {
  for (const auto& each : base::value_or_throw(tcp::interface_addresses())) {
    CAPTURE(each.interface, tcp::text_of(each.address));
    const bool is_v4 = each.address.any.sa_family == AF_INET;
    CHECK(each.prefix_bits > 0);
    CHECK(each.prefix_bits <= (is_v4 ? 32 : 128));
    if (is_v4) CHECK(ntohl(each.address.v4.sin_addr.s_addr) >> 24U != 127U);
  }
}
