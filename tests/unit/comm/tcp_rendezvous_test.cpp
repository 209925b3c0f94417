// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/tcp_rendezvous.hpp"

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>

#include <future>
#include <set>
#include <thread>

using namespace trireme;
using comm::Address;
using comm::Listener;
using std::chrono::milliseconds;

namespace {

Address ipv4(std::uint32_t a, std::uint32_t b, std::uint32_t c, std::uint32_t d, int prefix_bits) {
  Address address;
  address.socket.v4.sin_family = AF_INET;
  address.socket.v4.sin_addr.s_addr = htonl(a << 24U | b << 16U | c << 8U | d);
  address.prefix_bits = prefix_bits;
  return address;
}

/// Whether a process accepts connections there.
bool takes(const Address& address, std::uint16_t port) {
  auto place = address.socket;
  base::tcp::set_port(place, port);
  const auto socket = base::File::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  return ::connect(socket.get(), &place.any, base::tcp::size_of(place)) == 0;
}

bool same(const Address& one, const Address& other) {
  return base::tcp::text_of(one.socket) == base::tcp::text_of(other.socket);
}

const auto here = ipv4(127, 0, 0, 1, 8);

}  // namespace

TEST_CASE("addresses share a network when their prefixes do, to the bit") {
  CHECK(comm::share_network(ipv4(10, 1, 2, 3, 24), ipv4(10, 1, 2, 200, 24)));
  CHECK_FALSE(comm::share_network(ipv4(10, 1, 2, 3, 24), ipv4(10, 1, 3, 3, 24)));
  CHECK(comm::share_network(ipv4(10, 1, 2, 3, 23), ipv4(10, 1, 3, 3, 23)));
  CHECK_FALSE(comm::share_network(ipv4(10, 1, 2, 3, 24), ipv4(10, 1, 2, 4, 23)));
  auto other_family = ipv4(10, 1, 2, 3, 24);
  other_family.socket.any.sa_family = AF_INET6;
  CHECK_FALSE(comm::share_network(ipv4(10, 1, 2, 3, 24), other_family));
  CHECK_FALSE(comm::share_network({}, {}));
}

TEST_CASE(
    "a host listens in the networks of the other nodes, and everywhere only behind a router") {
  comm::Addresses own{};
  own[0] = ipv4(10, 1, 0, 1, 16);
  own[1] = ipv4(192, 168, 7, 1, 24);
  const auto found = comm::towards(own, {ipv4(192, 168, 7, 2, 24), {}});
  REQUIRE(found.size() == 1);
  CHECK(same(found.front(), own[1]));
  CHECK(comm::towards(own, {ipv4(172, 16, 0, 1, 24)}).size() == 2);
}

TEST_CASE("a listener listens at the addresses that it is told, and nowhere else") {
  const Listener listener({here});
  REQUIRE(listener.info().endpoint_count == 1);
  const auto port = base::tcp::port_of(listener.info().endpoints[0]);
  CHECK(takes(here, port));
  CHECK_FALSE(takes(ipv4(127, 0, 0, 2, 8), port));
}

TEST_CASE("a listener accepts peers that know the secret, whoever else connects") {
  Listener listener({here});
  auto wrong = listener.info();
  wrong.secret[5] ^= 1;
  auto refused =
      std::async(std::launch::async, [&] { return comm::connect_to(wrong, 3, milliseconds(300)); });
  auto accepted_peer = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(milliseconds(50));
    return comm::connect_to(listener.info(), 7, milliseconds(5000));
  });
  const auto accepted = listener.accept(1, milliseconds(5000));
  REQUIRE(accepted.size() == 1);
  CHECK(accepted.front().number == 7);
  CHECK(accepted_peer.get());
  CHECK_FALSE(refused.get());
}

TEST_CASE("a listener waits no longer than it is told") {
  Listener listener({here});
  const auto begin = std::chrono::steady_clock::now();
  CHECK(listener.accept(1, milliseconds(30)).empty());
  CHECK(std::chrono::steady_clock::now() - begin >= milliseconds(29));
}

TEST_CASE("a peer with several networks in common is in once, and none is left out") {
  // Each round opens two connections a peer at once: whichever is first must not count twice.
  constexpr int rounds = 50;
  constexpr std::int32_t peers = 3;
  for (int round = 0; round < rounds; ++round) {
    Listener listener({here, ipv4(127, 0, 0, 2, 8)});
    REQUIRE(listener.info().endpoint_count == 2);
    std::vector<std::future<base::File>> connected;
    for (std::int32_t number = 1; number <= peers; ++number) {
      connected.push_back(std::async(std::launch::async, [&listener, number] {
        return comm::connect_to(listener.info(), number, milliseconds(5000));
      }));
    }
    const auto accepted = listener.accept(peers, milliseconds(5000));
    std::set<std::int32_t> numbers;
    for (const auto& connection : accepted) numbers.insert(connection.number);
    REQUIRE(accepted.size() == peers);
    REQUIRE(numbers == std::set<std::int32_t>{1, 2, 3});
    std::vector<base::File> ends;
    for (auto& one : connected) ends.push_back(one.get());
    // Each accepted connection is the one that its peer has kept.
    for (const auto& connection : accepted) {
      const auto& end = ends[static_cast<std::size_t>(connection.number) - 1];
      REQUIRE(end);
      const char byte = static_cast<char>('0' + connection.number);
      REQUIRE(::send(end.get(), &byte, 1, 0) == 1);
      pollfd polled{connection.socket.get(), POLLIN, 0};
      REQUIRE(::poll(&polled, 1, 5000) == 1);
      char received = 0;
      REQUIRE(::recv(connection.socket.get(), &received, 1, 0) == 1);
      REQUIRE(received == byte);
    }
  }
}

TEST_CASE("strangers that connect and say nothing leave room for peers") {
  Listener listener({here});
  std::vector<base::File> strangers;
  for (int i = 0; i < 100; ++i) {
    auto stranger = base::tcp::begin_connect(listener.info().endpoints[0]);
    REQUIRE(stranger.ok());
    strangers.push_back(std::move(*stranger));
  }
  auto peer = std::async(std::launch::async,
                         [&] { return comm::connect_to(listener.info(), 7, milliseconds(5000)); });
  CHECK(listener.accept(1, milliseconds(5000)).size() == 1);
  CHECK(peer.get());
}
