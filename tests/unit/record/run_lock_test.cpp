// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/run_lock.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/json.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <fstream>
#include <thread>

using namespace trireme;
using namespace std::chrono_literals;
using record::RunLock;

namespace {

constexpr RunLock::Options quick{.heartbeat = 100ms, .patience = 60ms, .requeue_patience = 30s};
constexpr RunLock::Options without_locks{
    .heartbeat = 250ms, .patience = 60ms, .requeue_patience = 30s, .way = RunLock::Way::heartbeat};

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A process that takes the run and keeps it until it is killed.
class Holder {
 public:
  Holder(const std::filesystem::path& run, const std::string& job,
         const RunLock::Options& options) {
    int ready[2];
    REQUIRE(::pipe(ready) == 0);
    process_ = ::fork();
    if (process_ == 0) {
      const auto lock = RunLock::take(run, job, options);
      const char word = lock.ok() ? 'y' : 'n';
      if (::write(ready[1], &word, 1) == 1) ::pause();
      ::_exit(1);
    }
    char word = 'n';
    REQUIRE(::read(ready[0], &word, 1) == 1);
    REQUIRE(word == 'y');
    ::close(ready[0]);
    ::close(ready[1]);
  }
  Holder(const Holder&) = delete;
  Holder& operator=(const Holder&) = delete;
  ~Holder() { kill(); }
  void kill() {
    if (process_ == 0) return;
    ::kill(process_, SIGKILL);
    ::waitpid(process_, nullptr, 0);
    process_ = 0;
  }
  pid_t process() const { return process_; }

 private:
  pid_t process_ = 0;
};

/// Files that another node's process would have left.
void write_foreign(const std::filesystem::path& run) {
  std::ofstream(run / "lock") << R"({"job": "7.0", "process": 41, "host": "n2",
    "since": "2026-11-22T05:03:11.250Z", "boot": "another kernel", "token": "t"})";
}

}  // namespace

TEST_CASE("a run that somebody holds is refused, and its holder is named") {
  const tests::TemporaryFolder folder;
  const auto& options = GENERATE(quick, without_locks);
  const Holder first(folder.path(), "12.0", options);
  const auto second = RunLock::take(folder.path(), "13.0", options);
  REQUIRE_FALSE(second.ok());
  CHECK(second.failure().code == base::ExitCode::launch);
  CHECK(holds(second.failure().text, "job 12.0, process " + std::to_string(first.process())));
  CHECK(holds(second.failure().text, " since 20"));
  CHECK(holds(second.failure().text, "choose another run.directory"));
}

TEST_CASE("a run whose holder was killed is taken over") {
  const tests::TemporaryFolder folder;
  const auto& options = GENERATE(quick, without_locks);
  Holder first(folder.path(), "12.0", options);
  first.kill();
  const auto second = RunLock::take(folder.path(), "", options);
  REQUIRE(second.ok());
  CHECK_FALSE(second->is_lost());
  const auto json = base::value_or_throw(base::read_json_file(folder.path() / "lock"));
  CHECK(json.at("process") == ::getpid());
}

TEST_CASE("a run that was given back is free at once, and makes its folder when it has none") {
  const tests::TemporaryFolder folder;
  const auto run = folder.path() / "runs" / "a";
  const auto& options = GENERATE(quick, without_locks);
  for (int time = 0; time < 2; ++time) {
    const auto lock = RunLock::take(run, "", options);
    REQUIRE(lock.ok());
  }
  CHECK(std::filesystem::file_size(run / "lock") == 0);
}

TEST_CASE("a requeued job waits for the end of its own earlier step") {
  const tests::TemporaryFolder folder;
  Holder first(folder.path(), "12.0", quick);
  std::thread end([&] {
    std::this_thread::sleep_for(300ms);
    first.kill();
  });
  const auto second = RunLock::take(folder.path(), "12.1", quick);
  end.join();
  CHECK(second.ok());
}

TEST_CASE("a lock that this node cannot see is judged by the heartbeat") {
  const tests::TemporaryFolder folder;
  write_foreign(folder.path());
  std::atomic<bool> beats{true};
  std::thread heart([&] {
    while (beats) {
      std::filesystem::last_write_time(folder.path() / "lock",
                                       std::filesystem::file_time_type::clock::now());
      std::this_thread::sleep_for(10ms);
    }
  });
  const auto refused = RunLock::take(folder.path(), "", quick);
  beats = false;
  heart.join();
  REQUIRE_FALSE(refused.ok());
  CHECK(holds(refused.failure().text, "job 7.0, process 41 on n2"));
  CHECK(RunLock::take(folder.path(), "", quick).ok());
}

TEST_CASE("who holds a run is told without a wait, and a dead holder is none") {
  const tests::TemporaryFolder folder;
  CHECK_FALSE(record::living_holder(folder.path()).has_value());
  {
    Holder process(folder.path(), "12.0", quick);
    const auto holder = record::living_holder(folder.path());
    REQUIRE(holder.has_value());
    CHECK(holder->job == "12.0");
    process.kill();
    CHECK_FALSE(record::living_holder(folder.path()).has_value());
  }
  // A lock of another node, whose locks may not be seen here.
  write_foreign(folder.path());
  const auto lock = folder.path() / "lock";
  const auto now = std::filesystem::file_time_type::clock::now();
  std::filesystem::last_write_time(lock, now);
  REQUIRE(record::living_holder(folder.path()).has_value());
  CHECK(record::living_holder(folder.path())->host == "n2");
  std::filesystem::last_write_time(lock, now - 1h);
  CHECK_FALSE(record::living_holder(folder.path()).has_value());
  std::ofstream(lock, std::ios::trunc).flush();
  CHECK_FALSE(record::living_holder(folder.path()).has_value());
}

TEST_CASE("a holder notices that its lock was removed or taken") {
  const tests::TemporaryFolder folder;
  const auto first = RunLock::take(folder.path(), "", quick);
  REQUIRE(first.ok());
  CHECK_FALSE(first->is_lost());
  if (GENERATE(true, false)) {
    std::filesystem::remove(folder.path() / "lock");
  } else {
    write_foreign(folder.path());
  }
  for (int turn = 0; turn < 500 && !first->is_lost(); ++turn) std::this_thread::sleep_for(10ms);
  CHECK(first->is_lost());
}

TEST_CASE("a folder that cannot be made or written is no free run") {
  const auto refused = RunLock::take("/dev/null/run", "", quick);
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().code == base::ExitCode::checkpoint);
}
