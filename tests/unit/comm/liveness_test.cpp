// How a rank knows that another lives: its process, its system, and its own clock.
#include "comm/cut_text.hpp"
#include "comm/harbour.hpp"
#include "comm/node_tasks.hpp"
#include "comm/notice.hpp"
#include "comm/tcp_liveness.hpp"
#include "comm/wait_clock.hpp"
#include "comm/watched_process.hpp"

#include <catch2/catch.hpp>
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
  void bury() {
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

void check_watched(const base::File& socket) {
  CHECK(option(socket.get(), SOL_SOCKET, SO_KEEPALIVE) == 1);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_KEEPIDLE) == comm::TcpLiveness::idle_s);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_KEEPINTVL) == comm::TcpLiveness::interval_s);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_KEEPCNT) == comm::TcpLiveness::probes);
  CHECK(option(socket.get(), IPPROTO_TCP, TCP_USER_TIMEOUT) == comm::TcpLiveness::silence_s * 1000);
}

comm::Address loopback() {
  comm::Address address;
  address.family = AF_INET;
  address.prefix = 8;
  address.bytes[0] = 127;
  address.bytes[3] = 1;
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

TEST_CASE("both ends of a lifeline notice a system that is gone within 15 s") {
  CHECK(comm::TcpLiveness::silence_s + 2 < 15);
  comm::Harbour harbour({loopback()});
  auto ship = std::async(std::launch::async,
                         [&] { return comm::sail_to(harbour.berth(), 7, milliseconds(5000)); });
  const auto arrived = harbour.await(1, milliseconds(5000));
  REQUIRE(arrived.size() == 1);
  check_watched(arrived.front().socket);
  const auto socket = ship.get();
  REQUIRE(socket);
  check_watched(socket);
}

TEST_CASE("a quay that takes a connection and says nothing keeps nobody from the next one") {
  // It listens and never answers: the system takes connections for it.
  const comm::Harbour mute({loopback()});
  comm::Harbour harbour({loopback()});
  auto berth = harbour.berth();
  berth.quays[1] = berth.quays[0];
  berth.quays[0] = mute.berth().quays[0];
  berth.quay_count = 2;
  auto ship =
      std::async(std::launch::async, [&] { return comm::sail_to(berth, 7, milliseconds(20000)); });
  CHECK(harbour.await(1, milliseconds(20000)).size() == 1);
  CHECK(ship.wait_for(milliseconds(10000)) == std::future_status::ready);
  CHECK(ship.get());
}

TEST_CASE("texts are cut between characters") {
  CHECK(comm::cut_text("abc", 3) == "abc");
  CHECK(comm::cut_text("abcd", 3) == "abc");
  CHECK(comm::cut_text("ab\u00e4", 3) == "ab");
  CHECK(comm::cut_text("ab\u00e4", 4) == "ab\u00e4");
  CHECK(comm::cut_text("\u4e2d\u6587", 5) == "\u4e2d");
  CHECK(comm::cut_text("\u4e2d\u6587", 2).empty());
  std::string cause;
  while (cause.size() < 600) cause += "\u4e2d";
  const auto heard = comm::Notice({base::Rank(3), "n1", cause}).verdict().cause;
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
