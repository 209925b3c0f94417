// SPDX-License-Identifier: Apache-2.0
#include "netplugin/plugin_driver.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <numeric>
#include <random>

using namespace trireme::testing;
namespace net = trireme::nccl_net;

namespace {

const std::vector<std::size_t> sizes{0, 1, 7, 4096, 65537, 1U << 20, (16U << 20) + 3};

Case transfer_of(const std::vector<std::size_t>& lengths) {
  Case test;
  test.sender = [lengths](Peer& peer) {
    auto* connection = peer.send_side();
    for (const auto length : lengths) {
      auto data = pattern(length, static_cast<unsigned>(length));
      peer.send_all(connection, data);
    }
    expect(peer.plugin.completion().close_send(connection) == net::Result::success, "it closes");
  };
  test.receiver = [lengths](Peer& peer) {
    auto* connection = peer.receive_side();
    for (const auto length : lengths) {
      // More room than is sent: the size that is told must be the sender's.
      const auto data = peer.receive_all(connection, length + 64);
      expect(data == pattern(length, static_cast<unsigned>(length)),
             std::to_string(length) + " bytes arrive as they were sent");
    }
    expect(peer.plugin.completion().close_receive(connection) == net::Result::success, "it closes");
  };
  return test;
}

std::vector<int> shuffled(int count, unsigned seed) {
  std::vector<int> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(seed));
  return order;
}

std::size_t length_of(int index) {
  const auto position = static_cast<std::size_t>(index);
  return 1 + position * position * 977 % 300'000;
}

}  // namespace

TEST_CASE("messages of every size arrive as they were sent, in every version of the interface") {
  for (const int version : {9, 10, 11}) {
    for (const char* transports : {"tcp,self", "posix,sysv,cma,self,tcp"}) {
      auto test = transfer_of(sizes);
      test.version = version;
      test.transports = transports;
      CAPTURE(version, transports);
      CHECK(run_case(test) == "");
    }
  }
}

TEST_CASE("a sender says once what UCX carries its messages with") {
  for (const std::string transports : {"tcp,self", "posix,sysv,cma,self,tcp"}) {
    auto test = transfer_of({3, 1U << 20, 5});
    const auto send = test.sender;
    // Namespaces stand for nodes, which share no memory.
    const bool over_tcp =
        transports == "tcp,self" || std::getenv("TRIREME_SENDER_NETNS") != nullptr;
    test.sender = [send, over_tcp](Peer& peer) {
      send(peer);
      const std::string start = "NET/Trireme : to ";
      const auto& log = NetPlugin::log();
      const auto said = log.find(start);
      expect(said != std::string::npos, "it says so");
      expect(log.find(start, said + 1) == std::string::npos, "once");
      const auto line = log.substr(said, log.find('\n', said) - said);
      expect((line.find(" over tcp/") != std::string::npos) == over_tcp, line);
      expect((line.find("cma/memory") != std::string::npos) != over_tcp, line);
    };
    test.transports = transports;
    CHECK(run_case(test) == "");
  }
}

TEST_CASE("a message of one gigabyte arrives as it was sent") {
  CHECK(run_case(transfer_of({std::size_t{1} << 30}), 120) == "");
}

TEST_CASE("requests end in any order, and more of them than can be held wait for room") {
  constexpr int count = 32;
  Case test;
  test.sender = [](Peer& peer) {
    auto* connection = peer.send_side();
    std::vector<std::vector<std::byte>> data;
    std::vector<void*> requests;
    for (const int tag : shuffled(count, 5)) {
      data.push_back(pattern(length_of(tag), static_cast<unsigned>(tag)));
      void* request = nullptr;
      peer.plugin.send(connection, data.back().data(), data.back().size(), tag, &request);
      expect(request != nullptr, "32 sends fit");
      requests.push_back(request);
    }
    for (const int index : shuffled(count, 6)) peer.wait(requests[static_cast<std::size_t>(index)]);
    peer.meet();
    peer.plugin.completion().close_send(connection);
  };
  test.receiver = [](Peer& peer) {
    auto* connection = peer.receive_side();
    std::vector<std::vector<std::byte>> data(count, std::vector<std::byte>(300'001));
    std::vector<void*> requests(count);
    const auto post = [&](int tag) {
      auto& place = data[static_cast<std::size_t>(tag % count)];
      void* address = place.data();
      std::size_t room = place.size();
      void* request = nullptr;
      expect(peer.plugin.receive(connection, 1, &address, &room, &tag, &request) ==
                 net::Result::success,
             "it receives");
      return request;
    };
    for (int tag = count - 1; tag >= 0; --tag) requests[static_cast<std::size_t>(tag)] = post(tag);
    std::vector<void*> surplus;
    while (auto* request = post(1000 + static_cast<int>(surplus.size()))) {
      surplus.push_back(request);
      expect(surplus.size() < 1000, "there is an end of requests");
    }
    for (const int tag : shuffled(count, 7)) {
      const auto index = static_cast<std::size_t>(tag);
      const auto got = peer.wait(requests[index]).front();
      expect(static_cast<std::size_t>(got) == length_of(tag), "the length is told");
      data[index].resize(length_of(tag));
      // The surplus receives share the memory, but nothing is sent to them.
      expect(data[index] == pattern(length_of(tag), static_cast<unsigned>(tag)), "data fits tag");
    }
    expect(post(5000) != nullptr, "there is room again");
    peer.meet();
    peer.plugin.completion().close_receive(connection);
  };
  CHECK(run_case(test) == "");
}

TEST_CASE("a group of receives takes each message by its tag") {
  constexpr int count = 8;
  Case test;
  test.sender = [](Peer& peer) {
    auto* connection = peer.send_side();
    for (unsigned round = 0; round < 5; ++round) {
      for (const int tag : shuffled(count, round)) {
        auto data = pattern(length_of(tag * 13), static_cast<unsigned>(tag) + round);
        peer.send_all(connection, data, tag);
      }
    }
    peer.plugin.completion().close_send(connection);
  };
  test.receiver = [](Peer& peer) {
    auto* connection = peer.receive_side();
    for (unsigned round = 0; round < 5; ++round) {
      std::vector<std::vector<std::byte>> data(count, std::vector<std::byte>(300'001));
      std::array<void*, count> places{};
      std::array<std::size_t, count> rooms{};
      std::array<int, count> tags{};
      for (int i = 0; i < count; ++i) {
        const auto index = static_cast<std::size_t>(i);
        places[index] = data[index].data();
        rooms[index] = data[index].size();
        tags[index] = i;
      }
      void* request = nullptr;
      peer.plugin.receive(connection, count, places.data(), rooms.data(), tags.data(), &request);
      const auto got = peer.wait(request, count);
      for (std::size_t i = 0; i < count; ++i) {
        const auto tag = static_cast<int>(i);
        data[i].resize(static_cast<std::size_t>(got[i]));
        expect(data[i] == pattern(length_of(tag * 13), static_cast<unsigned>(i) + round),
               "each part has its message");
      }
    }
    peer.plugin.completion().close_receive(connection);
  };
  CHECK(run_case(test) == "");
}

TEST_CASE("64 connections between two processes do not mix") {
  constexpr std::size_t count = 64;
  Case test;
  test.sender = [](Peer& peer) {
    std::vector<void*> connections;
    for (std::size_t i = 0; i < count; ++i) connections.push_back(peer.send_side());
    for (std::size_t i = count; i-- > 0;) {
      auto data = pattern(10'000 + i, static_cast<unsigned>(i));
      peer.send_all(connections[i], data);
    }
    for (auto* each : connections) peer.plugin.completion().close_send(each);
  };
  test.receiver = [](Peer& peer) {
    std::vector<void*> connections;
    for (std::size_t i = 0; i < count; ++i) connections.push_back(peer.receive_side());
    for (std::size_t i = 0; i < count; ++i) {
      expect(
          peer.receive_all(connections[i], 20'000) == pattern(10'000 + i, static_cast<unsigned>(i)),
          "each connection has its message");
    }
    for (auto* each : connections) peer.plugin.completion().close_receive(each);
  };
  CHECK(run_case(test) == "");
}

TEST_CASE("memory is registered once for ranges that lie in each other, and can be read back") {
  Case test;
  test.sender = [](Peer& peer) {
    auto* connection = peer.send_side();
    auto data = pattern(1U << 20, 9);
    peer.send_all(connection, data);
    peer.plugin.completion().close_send(connection);
  };
  test.receiver = [](Peer& peer) {
    auto* connection = peer.receive_side();
    const auto& table = peer.plugin.memory();
    std::vector<std::byte> memory(2U << 20);
    void* whole = nullptr;
    void* part = nullptr;
    void* other = nullptr;
    std::vector<std::byte> elsewhere(4096);
    const auto enter = [&](std::byte* at, std::size_t size, void** mr) {
      expect(table.register_memory(connection, at, size, net::pointer_host, mr) ==
                 net::Result::success,
             "memory is registered");
    };
    enter(memory.data(), memory.size(), &whole);
    enter(memory.data() + 4096, 4096, &part);
    enter(elsewhere.data(), elsewhere.size(), &other);
    expect(whole == part && whole != other, "what lies in it shares it");
    expect(table.deregister_memory(connection, part) == net::Result::success, "one user leaves");
    void* place = memory.data();
    std::size_t room = memory.size();
    int tag = 0;
    void* request = nullptr;
    peer.plugin.receive(connection, 1, &place, &room, &tag, &request);
    int got = peer.wait(request).front();
    expect(peer.plugin.completion().flush(connection, 1, &place, &got, &whole, &request) ==
               net::Result::success,
           "a flush begins");
    peer.wait(request);
    memory.resize(static_cast<std::size_t>(got));
    expect(memory == pattern(1U << 20, 9), "the data is there");
    for (auto* mr : {whole, other}) {
      expect(table.deregister_memory(connection, mr) == net::Result::success, "it is forgotten");
    }
    peer.plugin.completion().close_receive(connection);
  };
  CHECK(run_case(test) == "");
}

TEST_CASE("two devices as one carry a message together") {
  if (std::getenv("TRIREME_SENDER_NETNS") == nullptr) {
    WARN("TRIREME_SKIP: only in namespaces that have two devices (netplugin.namespaces)");
    return;
  }
  auto test = transfer_of({1, 1000, 8U << 20});
  const auto in_one = [](const std::function<void(Peer&)>& act) {
    return [act](Peer& peer) {
      expect(peer.plugin.device_count() >= 2, "there are two devices");
      expect(peer.plugin.make_virtual_device(&peer.device, {0, 1}) == net::Result::success,
             "they become one");
      const auto whole = peer.plugin.properties(peer.device);
      expect(std::string(whole.name).find('+') != std::string::npos, "it is named after both");
      act(peer);
    };
  };
  test.sender = in_one(test.sender);
  test.receiver = in_one(test.receiver);
  CHECK(run_case(test) == "");
}
