// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/comm/peer_error.hpp"

#include "mpi/behaviour/group_fixture.hpp"

#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <span>
#include <thread>

using namespace trireme;
using namespace trireme::testing;

namespace {

/// One of the staged ones is enough: the deadline is that of the group beneath.
constexpr std::array patient_backends{Backend::mpi, Backend::shared, Backend::staged_shared,
                                      Backend::nccl, Backend::nccl_joined};
/// Among more than four ranks only MPI does another thing than among few: they relay.
std::span<const Backend> backends_here() {
  return std::span(patient_backends).first(mpi().world_size() > 4 ? 1 : patient_backends.size());
}

base::Rank last_rank() {
  return base::Rank(mpi().world_size() - 1);
}
bool is_late() {
  return mpi().world_rank() == last_rank();
}

/// To those that cannot tell for whom they wait, or are waited for by ranks that relay, a rank that
/// has given up must not seem to wait elsewhere yet, as it does in the next barrier.
void let_others_give_up(const std::string& backend) {
  if (backend != "nccl" && mpi().world_size() <= 4) return;
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
}

/// The last rank stays away; all others must learn who, where and what within the deadline.
void check_absence(ProcessGroup& group, const std::string& operation, std::uint64_t number,
                   const std::function<void()>& call) {
  CAPTURE(group.backend(), operation);
  const auto meeting = world_of(Backend::mpi);
  if (!is_late()) {
    const auto begin = std::chrono::steady_clock::now();
    bool thrown = false;
    try {
      call();
    } catch (const comm::PeerError& error) {
      thrown = true;
      const std::string text = error.what();
      CAPTURE(text);
      CHECK(error.code() == base::ExitCode::peer);
      CHECK(error.absence().operation == operation);
      CHECK(error.absence().group == group.name());
      // A staged message is one of the host's group for each of its pieces.
      const bool pieces = operation == "send" && std::string(group.backend()) == "staged";
      CHECK((pieces ? error.absence().number >= number : error.absence().number == number));
      CHECK(error.absence().ranks == std::vector<base::Rank>{last_rank()});
      CHECK(error.absence().host == mpi().node_name());
      CHECK(text.find(operation) != std::string::npos);
      CHECK(text.find("'" + group.name() + "'") != std::string::npos);
      CHECK(text.find("rank " + std::to_string(last_rank().value())) != std::string::npos);
      CHECK(text.find(base::format("number {}", error.absence().number)) != std::string::npos);
      CHECK(text.find("comm.timeout = 700.0 ms") != std::string::npos);
    }
    CHECK(thrown);
    const std::chrono::duration<double> waited = std::chrono::steady_clock::now() - begin;
    CHECK(waited.count() >= soon_seconds);
    let_others_give_up(group.backend());
  }
  meeting->barrier();
}

}  // namespace

TEST_CASE("a rank that stays away is named by every collective that waits for it") {
  if (mpi().world_size() < 2) return;
  for (const auto backend : backends_here()) {
    constexpr std::int64_t count = 30001;
    auto values = exact_values(mpi().world_rank().value(), count * mpi().world_size());
    auto others = values;
    std::vector<float> small(8);
    std::vector<std::int32_t> counts(8);
    std::vector<float> all_small(static_cast<std::size_t>(mpi().world_size()));
    const auto whole = tensor_of(values);
    const auto part = whole.slice(0, 0, count);
    const auto check = [&](const std::string& operation,
                           const std::function<void(ProcessGroup&)>& call) {
      const auto group = world_of(backend, soon_seconds);
      group->barrier();
      check_absence(*group, operation, 2, [&] { call(*group); });
    };
    check("all_reduce", [&](auto& group) { group.all_reduce(whole); });
    check("all_reduce", [&](auto& group) { group.all_reduce(tensor_of(small)); });
    check("reduce_scatter", [&](auto& group) { group.reduce_scatter(whole, part); });
    check("all_gather", [&](auto& group) { group.all_gather(part, whole); });
    check("all_to_all", [&](auto& group) { group.all_to_all(whole, tensor_of(others)); });
    check("broadcast", [&](auto& group) { group.broadcast(whole, last_rank().value()); });
    check("barrier", [&](auto& group) { group.barrier(); });
    if (mpi().world_size() <= 4) continue;
    check("all_reduce", [&](auto& group) { group.all_reduce(tensor_of(counts)); });
    check("all_gather", [&](auto& group) {
      group.all_gather(tensor_of(small).slice(0, 0, 1), tensor_of(all_small));
    });
    check("broadcast",
          [&](auto& group) { group.broadcast(tensor_of(small), last_rank().value()); });
  }
}

TEST_CASE("a rank that waits for a lost message is named by all who wait for it in turn") {
  if (mpi().world_size() < 2) return;
  const auto messages = world_of(Backend::mpi);
  std::vector<base::Rank> others;
  for (int rank = 0; rank < last_rank().value(); ++rank) others.emplace_back(rank);
  const auto meeting = is_late() ? nullptr : group_of("others", others, Backend::mpi);
  std::vector<float> sums(4);
  std::vector<std::int32_t> counts(4);
  for (const auto& small : {tensor_of(sums), tensor_of(counts)}) {
    const auto group = world_of(Backend::mpi, soon_seconds);
    group->barrier();
    if (is_late()) {
      // The first rank sends only when all others have given up.
      messages->receive(tensor_of(sums), 0, 3);
      continue;
    }
    try {
      group->all_reduce(small);
      FAIL("a sum ended without a rank");
    } catch (const comm::PeerError& error) {
      CAPTURE(error.what());
      CHECK(error.absence().ranks == std::vector{last_rank()});
      CHECK_THAT(error.what(), Catch::Contains("waiting in receive from rank 0"));
    }
    let_others_give_up(group->backend());
    meeting->barrier();
    if (mpi().world_rank().value() == 0) messages->send(tensor_of(sums), last_rank().value(), 3);
  }
}

TEST_CASE("a message that does not come names its sender") {
  if (mpi().world_size() < 2) return;
  for (const auto backend : backends_here()) {
    const auto group = world_of(backend, soon_seconds);
    std::vector<float> values(1000);
    check_absence(*group, "receive", 1,
                  [&] { group->receive(tensor_of(values), last_rank().value(), 3); });
  }
}

TEST_CASE("a message that nobody takes names its receiver") {
  if (mpi().world_size() < 2) return;
  for (const auto backend : backends_here()) {
    const auto group = world_of(backend, soon_seconds);
    // More than any backend keeps on its way.
    std::vector<float> values(std::size_t{1} << 20);
    check_absence(*group, "send", 1,
                  [&] { group->send(tensor_of(values), last_rank().value(), 3); });
  }
}

TEST_CASE("a rank that makes no group is named by those that do") {
  if (mpi().world_size() < 2) return;
  std::vector<base::Rank> everybody;
  for (int rank = 0; rank < mpi().world_size(); ++rank) everybody.emplace_back(rank);
  for (const auto backend : backends_here()) {
    // A name of its own: what a group that failed has left on its way reaches none that is made
    // later.
    const auto group_name = base::format("late over {}", name(backend));
    const auto make = [&] { group_of(group_name, everybody, backend, soon_seconds); };
    CAPTURE(group_name);
    const auto meeting = world_of(Backend::mpi);
    if (!is_late()) {
      try {
        make();
        FAIL("the group was made without a member");
      } catch (const comm::PeerError& error) {
        CHECK(error.absence().operation == "make_group");
        CHECK(error.absence().group == group_name);
        CHECK(error.absence().ranks == std::vector<base::Rank>{last_rank()});
      }
      let_others_give_up("");
    }
    meeting->barrier();
    // Those that came have given up: who comes now waits for them in vain.
    if (is_late()) CHECK_THROWS_AS(make(), comm::PeerError);
    meeting->barrier();
  }
}

namespace {

/// A process beside this one that stops it after a moment, and lets it go on later.
void suspend_for(double seconds) {
  const auto script =
      base::format("sleep 0.2; kill -STOP {0}; sleep {1}; kill -CONT {0}", ::getpid(), seconds);
  std::string shell = "/bin/sh";
  std::string command = "-c";
  std::string text = script;
  std::array<char*, 4> arguments{shell.data(), command.data(), text.data(), nullptr};
  pid_t process = 0;
  REQUIRE(::posix_spawn(&process, shell.c_str(), nullptr, nullptr, arguments.data(), environ) == 0);
  std::thread([process] {
    int status = 0;
    ::waitpid(process, &status, 0);
  }).detach();
}

}  // namespace

TEST_CASE("a job that is suspended for longer than its deadline goes on when it is resumed") {
  if (mpi().world_size() < 2) return;
  constexpr double deadline = 2;
  const auto group = world_of(Backend::mpi, deadline);
  const auto shared = world_of(Backend::shared, deadline);
  for (auto* each : {group.get(), shared.get()}) {
    CAPTURE(each->backend());
    if (is_late()) {
      // Those that wait have gone on by now, and have had a moment to look at their clocks.
      std::this_thread::sleep_for(std::chrono::duration<double>(deadline + 1.2));
    } else {
      suspend_for(deadline + 0.5);
    }
    CHECK_NOTHROW(each->barrier());
  }
}

// Run alone, by mpi.watchdog: it does hang.
TEST_CASE("a rank hangs", "[.hangs]") {
  const auto group = world_of(Backend::mpi, 600);
  group->barrier();
  if (is_late()) std::this_thread::sleep_for(std::chrono::hours(1));
  group->barrier();
}

TEST_CASE("the deadline counts from the wait, not from the start") {
  for (const auto backend : backends_here()) {
    const auto group = world_of(backend, soon_seconds);
    CAPTURE(group->backend());
    auto values = exact_values(group->rank(), 4099);
    auto work = group->start_all_reduce(tensor_of(values), ReduceOp::max);
    std::this_thread::sleep_for(std::chrono::duration<double>(1.5 * soon_seconds));
    work.wait();
    CHECK(first_difference(values, exact_values(group->size() - 1, 4099)) == -1);
  }
}
