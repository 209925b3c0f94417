// SPDX-License-Identifier: Apache-2.0
#include "netplugin/plugin_driver.hpp"

#include <catch2/catch.hpp>

#include <chrono>
#include <csignal>
#include <thread>

using namespace trireme::testing;

TEST_CASE("a receiver learns that its peer was killed") {
  Case test;
  test.sender_is_killed = true;
  test.sender = [](Peer& peer) {
    peer.send_side();
    peer.meet();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::raise(SIGKILL);
  };
  test.receiver = [](Peer& peer) {
    auto* connection = peer.receive_side();
    std::vector<std::byte> data(1000);
    void* place = data.data();
    std::size_t room = data.size();
    int tag = 0;
    void* request = nullptr;
    peer.plugin.receive(connection, 1, &place, &room, &tag, &request);
    peer.meet();
    expect(peer.wait_for_failure(request, 10) == net::Result::remote_error, "it is told");
    expect(NetPlugin::log().find("is gone while connection") != std::string::npos, "in words");
    expect(peer.plugin.completion().close_receive(connection) == net::Result::success,
           "it can close");
  };
  CHECK(run_case(test) == "");
}

TEST_CASE("a sender learns that its peer was killed") {
  Case test;
  test.receiver_is_killed = true;
  test.receiver = [](Peer& peer) {
    peer.receive_side();
    peer.meet();
    std::this_thread::sleep_for(std::chrono::milliseconds(100));
    std::raise(SIGKILL);
  };
  test.sender = [](Peer& peer) {
    auto* connection = peer.send_side();
    auto data = pattern(64U << 20, 1);
    void* request = nullptr;
    peer.plugin.send(connection, data.data(), data.size(), 0, &request);
    peer.meet();
    expect(peer.wait_for_failure(request, 20) == net::Result::remote_error, "it is told");
    expect(peer.plugin.completion().close_send(connection) == net::Result::success, "it can close");
  };
  CHECK(run_case(test) == "");
}

TEST_CASE("whoever dies amid a stream of messages, the other side learns of it") {
  for (const char* transports : {"tcp,self", "posix,sysv,cma,self,tcp"}) {
    for (const bool sender_dies : {true, false}) {
      Case test;
      test.transports = transports;
      test.sender_is_killed = sender_dies;
      test.receiver_is_killed = !sender_dies;
      // Until one side is killed or the other fails.
      // The memory outlives the connection, whose transfers may still write into it.
      const auto stream = [](Peer& peer, void* connection, bool sends,
                             std::vector<std::byte>& data) {
        auto result = net::Result::success;
        const auto begin = std::chrono::steady_clock::now();
        while (result == net::Result::success) {
          void* place = data.data();
          std::size_t room = data.size();
          int tag = 0;
          void* request = nullptr;
          result = sends ? peer.plugin.send(connection, place, room, tag, &request)
                         : peer.plugin.receive(connection, 1, &place, &room, &tag, &request);
          if (request != nullptr) result = peer.wait_for_failure(request, 20);
          expect(std::chrono::steady_clock::now() - begin < std::chrono::seconds(30),
                 "it is told in time");
        }
        expect(result == net::Result::remote_error, "it is told what happened");
      };
      const auto live = [stream](bool sends) {
        return [stream, sends](Peer& peer) {
          auto data = pattern(4U << 20, 1);
          auto* connection = sends ? peer.send_side() : peer.receive_side();
          stream(peer, connection, sends, data);
          const auto& functions = peer.plugin.completion();
          expect((sends ? functions.close_send : functions.close_receive)(connection) ==
                     net::Result::success,
                 "it can close");
        };
      };
      const auto die = [stream](bool sends) {
        return [stream, sends](Peer& peer) {
          auto* connection = sends ? peer.send_side() : peer.receive_side();
          std::thread([] {
            std::this_thread::sleep_for(std::chrono::milliseconds(300));
            std::raise(SIGKILL);
          }).detach();
          auto data = pattern(4U << 20, 1);
          stream(peer, connection, sends, data);
        };
      };
      test.sender = sender_dies ? std::function<void(Peer&)>(die(true)) : live(true);
      test.receiver = sender_dies ? std::function<void(Peer&)>(live(false)) : die(false);
      CAPTURE(transports, sender_dies);
      CHECK(run_case(test) == "");
    }
  }
}

TEST_CASE("what was sent before a goodbye still arrives") {
  Case test;
  test.sender = [](Peer& peer) {
    auto* connection = peer.send_side();
    // UCX wires up while both sides work; from then on a short message leaves at once.
    for (const unsigned seed : {1U, 2U}) {
      auto data = pattern(3000, seed);
      peer.send_all(connection, data);
    }
    peer.plugin.completion().close_send(connection);
    peer.meet();
  };
  test.receiver = [](Peer& peer) {
    auto* connection = peer.receive_side();
    expect(peer.receive_all(connection, 5000) == pattern(3000, 1), "the first arrives");
    peer.meet();
    expect(peer.receive_all(connection, 5000) == pattern(3000, 2), "and the last");
    peer.plugin.completion().close_receive(connection);
  };
  CHECK(run_case(test) == "");
}

TEST_CASE("a caller without the secret is turned away, and the true sender still comes") {
  Case test;
  test.sender = [](Peer& peer) {
    Handle handle{};
    peer.hear(handle.data(), handle.size());
    auto forged = handle;
    forged[12] ^= std::byte{1};
    void* connection = nullptr;
    auto result = net::Result::success;
    const auto begin = std::chrono::steady_clock::now();
    while (result == net::Result::success && connection == nullptr &&
           std::chrono::steady_clock::now() - begin < std::chrono::seconds(15)) {
      result = peer.plugin.connect(0, forged.data(), &connection);
    }
    expect(result == net::Result::remote_error && connection == nullptr, "it is turned away");
    Handle foreign{};
    expect(peer.plugin.connect(0, foreign.data(), &connection) == net::Result::invalid_usage,
           "a handle of somebody else is refused");
    expect(NetPlugin::log().find("another network plugin") != std::string::npos, "in words");
    while (connection == nullptr) {
      expect(peer.plugin.connect(0, handle.data(), &connection) == net::Result::success,
             "the true one connects");
    }
    auto data = pattern(100, 1);
    peer.send_all(connection, data);
    peer.plugin.completion().close_send(connection);
  };
  test.receiver = [](Peer& peer) {
    auto* connection = peer.receive_side();
    expect(peer.receive_all(connection, 100) == pattern(100, 1), "its message arrives");
    peer.plugin.completion().close_receive(connection);
  };
  CHECK(run_case(test) == "");
}
