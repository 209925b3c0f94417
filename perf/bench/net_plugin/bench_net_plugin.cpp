// SPDX-License-Identifier: Apache-2.0
// Bandwidth of NCCL's network plugin between two processes: messages of one size, several under
// way. usage: TRIREME_NET_PLUGIN=FILE bench_net_plugin BYTES MESSAGES [WINDOW]
// UCX_TLS chooses transports; prints gigabytes a second.
#include "netplugin/plugin_driver.hpp"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <string>

using namespace trireme::testing;

namespace {

struct Work {
  std::size_t bytes = 0;
  int messages = 0;
  int window = 16;
};

/// Keeps the window full. All messages use the same memory, as ucx_perftest's do: what lies in a
/// cache and what does not would else make the difference.
template <typename Post>
void pump(Peer& peer, const Work& work, int messages, const Post& post) {
  std::deque<void*> under_way;
  for (int begun = 0; begun < messages || !under_way.empty();) {
    if (begun < messages && static_cast<int>(under_way.size()) < work.window) {
      if (auto* request = post()) {
        under_way.push_back(request);
        ++begun;
        continue;
      }
    }
    peer.wait(under_way.front());
    under_way.pop_front();
  }
}

}  // namespace

int main(int count, char** arguments) {
  if (count < 3) {
    std::fprintf(stderr, "usage: bench_net_plugin BYTES MESSAGES [WINDOW]\n");
    return 2;
  }
  Work work{std::stoul(arguments[1]), std::stoi(arguments[2])};
  if (count > 3) work.window = std::stoi(arguments[3]);
  const int warm_up = std::max(work.messages / 10, work.window);
  Case test;
  if (const char* transports = std::getenv("UCX_TLS")) test.transports = transports;
  test.sender = [&](Peer& peer) {
    auto* connection = peer.send_side();
    auto data = pattern(work.bytes, 1);
    const auto post = [&] {
      void* request = nullptr;
      peer.plugin.send(connection, data.data(), work.bytes, 0, &request);
      return request;
    };
    pump(peer, work, warm_up, post);
    peer.meet();
    const auto begin = std::chrono::steady_clock::now();
    pump(peer, work, work.messages, post);
    peer.meet();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
    std::printf("%.4f\n", static_cast<double>(work.bytes) * work.messages / seconds.count() / 1e9);
    std::fflush(stdout);
    peer.plugin.completion().close_send(connection);
  };
  test.receiver = [&](Peer& peer) {
    auto* connection = peer.receive_side();
    std::vector<std::byte> data(work.bytes);
    const auto post = [&] {
      void* place = data.data();
      std::size_t bytes = work.bytes;
      int tag = 0;
      void* request = nullptr;
      peer.plugin.receive(connection, 1, &place, &bytes, &tag, &request);
      return request;
    };
    pump(peer, work, warm_up, post);
    peer.meet();
    pump(peer, work, work.messages, post);
    peer.meet();
    peer.plugin.completion().close_receive(connection);
  };
  const auto wrong = run_case(test, 300);
  if (!wrong.empty()) std::fprintf(stderr, "bench_net_plugin: %s\n", wrong.c_str());
  return wrong.empty() ? 0 : 1;
}
