#include "comm/harbour.hpp"

#include <catch2/catch.hpp>
#include <netinet/in.h>
#include <sys/socket.h>

#include <future>
#include <thread>

using namespace trireme;
using comm::Address;
using comm::Harbour;
using std::chrono::milliseconds;

namespace {

Address ipv4(int a, int b, int c, int d, int prefix) {
  Address address;
  address.family = AF_INET;
  address.prefix = prefix;
  std::size_t at = 0;
  for (const int byte : {a, b, c, d}) address.bytes[at++] = static_cast<std::uint8_t>(byte);
  return address;
}

/// Whether anybody takes a connection there.
bool takes(const Address& address, std::int32_t port) {
  const auto socket = base::File::adopt(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in place{};
  place.sin_family = AF_INET;
  place.sin_port = htons(static_cast<std::uint16_t>(port));
  std::copy_n(address.bytes.begin(), sizeof place.sin_addr,
              reinterpret_cast<std::uint8_t*>(&place.sin_addr));
  return ::connect(socket.get(), reinterpret_cast<const sockaddr*>(&place), sizeof place) == 0;
}

bool same(const Address& one, const Address& other) {
  return one.family == other.family && one.bytes == other.bytes;
}

const auto here = ipv4(127, 0, 0, 1, 8);

}  // namespace

TEST_CASE("addresses share a network when their prefixes do, to the bit") {
  CHECK(comm::share_network(ipv4(10, 1, 2, 3, 24), ipv4(10, 1, 2, 200, 24)));
  CHECK_FALSE(comm::share_network(ipv4(10, 1, 2, 3, 24), ipv4(10, 1, 3, 3, 24)));
  CHECK(comm::share_network(ipv4(10, 1, 2, 3, 23), ipv4(10, 1, 3, 3, 23)));
  CHECK_FALSE(comm::share_network(ipv4(10, 1, 2, 3, 24), ipv4(10, 1, 2, 4, 23)));
  auto other_family = ipv4(10, 1, 2, 3, 24);
  other_family.family = AF_INET6;
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

TEST_CASE("a harbour listens at the addresses that it is told, and nowhere else") {
  const Harbour harbour({here});
  REQUIRE(harbour.berth().quay_count == 1);
  const auto port = harbour.berth().quays[0].port;
  CHECK(takes(here, port));
  CHECK_FALSE(takes(ipv4(127, 0, 0, 2, 8), port));
}

TEST_CASE("a harbour lets in those who know the secret, whoever else comes") {
  Harbour harbour({here});
  auto wrong = harbour.berth();
  wrong.secret[5] ^= 1;
  auto stranger =
      std::async(std::launch::async, [&] { return comm::sail_to(wrong, 3, milliseconds(300)); });
  auto friendly = std::async(std::launch::async, [&] {
    std::this_thread::sleep_for(milliseconds(50));
    return comm::sail_to(harbour.berth(), 7, milliseconds(5000));
  });
  const auto arrived = harbour.await(1, milliseconds(5000));
  REQUIRE(arrived.size() == 1);
  CHECK(arrived.front().number == 7);
  CHECK(friendly.get());
  CHECK_FALSE(stranger.get());
}

TEST_CASE("a harbour waits no longer than it is told") {
  Harbour harbour({here});
  const auto begin = std::chrono::steady_clock::now();
  CHECK(harbour.await(1, milliseconds(30)).empty());
  CHECK(std::chrono::steady_clock::now() - begin >= milliseconds(29));
}
