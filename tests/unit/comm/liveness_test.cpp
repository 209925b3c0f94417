// SPDX-License-Identifier: Apache-2.0
// How a rank knows that another lives: its process, its system, and its own clock.
#include "comm/core/wait_clock.hpp"
#include "comm/watchdog/failure_message.hpp"
#include "comm/watchdog/node_tasks.hpp"
#include "comm/watchdog/tcp_rendezvous.hpp"
#include "comm/watchdog/watched_process.hpp"

#include <catch2/catch.hpp>
#include <netinet/tcp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <future>
#include <thread>

using namespace trireme;
using comm::WaitClock;
using comm::WatchedProcess;
using std::chrono::milliseconds;
using Life = WatchedProcess::Life;
using Means = WatchedProcess::Means;

namespace {

/// A process that does nothing until it is told to end.
class Sleeper {
 public:
  Sleeper() : process_(::fork()) {
    if (process_ == 0) {
      for (;;) ::pause();
    }
  }
  ~Sleeper() {
    ::kill(process_, SIGKILL);
    bury();
  }
  Sleeper(const Sleeper&) = delete;
  Sleeper& operator=(const Sleeper&) = delete;

  int number() const { return process_; }
  void end() const {
    ::kill(process_, SIGKILL);
    siginfo_t info{};
    // It stays a zombie: its number is not used again.
    ::waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT);
  }
  void bury() const {
    int status = 0;
    if (process_ > 0) ::waitpid(process_, &status, 0);
  }

 private:
  int process_;
};

int option(int socket, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  REQUIRE(::getsockopt(socket, level, name, &value, &size) == 0);
  return value;
}

void check_keepalive(const base::File& socket) {
  CHECK(option(socket.get(), SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE) == base::tcp::Keepalive::idle_s);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL) == base::tcp::Keepalive::interval_s);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_KEEPCNT) == base::tcp::Keepalive::probes);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT) ==
        base::tcp::Keepalive::silence_s * 1000);
}

comm::Address loopback() {
  comm::Address address;
  address.socket.v4.sin_family = AF_INET;
  address.socket.v4.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.prefix_bits = 8;
  return address;
}

}  // namespace

TEST_CASE("a neighbour's end is seen with and without a descriptor of it") {
  for (const auto means : {Means::descriptor, Means::start_time}) {
    const Sleeper sleeper;
    const WatchedProcess watched(sleeper.number(), means);
    CHECK(watched.means() == means);
    CHECK(watched.life() == Life::running);
    sleeper.end();
    CHECK(watched.life() == Life::ended);
  }
}

TEST_CASE("a neighbour that cannot be seen is unknown, neither alive nor dead") {
  const Sleeper sleeper;
  CHECK(WatchedProcess(sleeper.number(), Means::none).life() == Life::unknown);
  CHECK(WatchedProcess{}.life() == Life::unknown);
  Sleeper gone;
  gone.end();
  gone.bury();
  CHECK(WatchedProcess(gone.number()).life() == Life::unknown);
}

TEST_CASE("a neighbour that hangs is killed by either means") {
  for (const auto means : {Means::descriptor, Means::start_time}) {
    Sleeper sleeper;
    const WatchedProcess watched(sleeper.number(), means);
    watched.kill();
    siginfo_t info{};
    ::waitid(P_PID, static_cast<id_t>(sleeper.number()), &info, WEXITED | WNOWAIT);
    CHECK(info.si_status == SIGKILL);
    CHECK(watched.life() == Life::ended);
  }
}

TEST_CASE("a wait does not count the time in which its process was stopped") {
  const WaitClock::Clock::time_point start{};
  WaitClock clock(start);
  CHECK(clock.waited(start + milliseconds(900)).count() == Approx(0.9));
  CHECK(clock.waited(start + milliseconds(60900)).count() == Approx(0.9));
  CHECK(clock.waited(start + milliseconds(61700)).count() == Approx(1.7));
}

TEST_CASE("both ends of a connection notice a system that is gone within 15 s") {
  CHECK(base::tcp::Keepalive::silence_s + 2 < 15);
  comm::Listener listener({loopback()});
  auto connected = std::async(
      std::launch::async, [&] { return comm::connect_to(listener.info(), 7, milliseconds(5000)); });
  const auto accepted = listener.accept(1, milliseconds(5000));
  REQUIRE(accepted.size() == 1);
  check_keepalive(accepted.front().socket);
  const auto socket = connected.get();
  REQUIRE(socket);
  check_keepalive(socket);
}

TEST_CASE("an endpoint that accepts and never answers does not keep a peer from the next one") {
  // It listens and never answers: the system takes connections for it.
  const comm::Listener mute({loopback()});
  comm::Listener listener({loopback()});
  auto info = listener.info();
  info.endpoints[1] = info.endpoints[0];
  info.endpoints[0] = mute.info().endpoints[0];
  info.endpoint_count = 2;
  auto connected = std::async(std::launch::async,
                              [&] { return comm::connect_to(info, 7, milliseconds(20000)); });
  CHECK(listener.accept(1, milliseconds(20000)).size() == 1);
  CHECK(connected.wait_for(milliseconds(10000)) == std::future_status::ready);
  CHECK(connected.get());
}

TEST_CASE("texts are cut between characters") {
  CHECK(base::cut_utf8("abc", 3) == "abc");
  CHECK(base::cut_utf8("abcd", 3) == "abc");
  CHECK(base::cut_utf8("ab\u00e4", 3) == "ab");
  CHECK(base::cut_utf8("ab\u00e4", 4) == "ab\u00e4");
  CHECK(base::cut_utf8("\u4e2d\u6587", 5) == "\u4e2d");
  CHECK(base::cut_utf8("\u4e2d\u6587", 2).empty());
  std::string cause;
  while (cause.size() < 600) cause += "\u4e2d";
  const auto heard = comm::FailureMessage({base::Rank(3), "n1", cause}).cause().text;
  CHECK(heard.size() == 510);
  CHECK(cause.starts_with(heard));
}

TEST_CASE("who is missing on a node is told from what runs there") {
  using comm::NodeTasks;
  using Extent = NodeTasks::Extent;
  const NodeTasks whole({{2, 13, 'S'}, {0, 11, 'R'}}, 0, 3, Extent::whole_world);
  CHECK(whole.text() == "rank 1 is not there: it has ended or never started");
  CHECK(whole.suspect() == 1);
  CHECK(whole.speaks_for_node());
  const NodeTasks stopped({{4, 11, 'T'}, {5, 12, 'S'}, {6, 13, 'S'}}, 5, 4, Extent::node_of_many);
  CHECK(stopped.text() ==
        "rank 4 (process 11) is stopped by a signal, 1 of the 4 ranks of this node are not there");
  CHECK(stopped.suspect() == 4);
  CHECK(stopped.speaks_for_node());
  const NodeTasks here({{4, 11, 'S'}, {5, 12, 'S'}}, 5, 2, Extent::node_of_many);
  CHECK(here.text().find("all 2 ranks of this node are there") == 0);
  CHECK(here.suspect() == 5);
  CHECK_FALSE(here.speaks_for_node());
}
