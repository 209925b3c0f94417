// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/failure.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/log.hpp"
#include "trireme/record/run_lock.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <thread>

using namespace trireme;

namespace {

record::Failure failure_of(int rank) {
  record::Failure failure;
  failure.cause = "rank 2 (process 41 on n1)\ndied";
  failure.exit_code = 5;
  failure.first_rank = rank;
  failure.host = "n1";
  failure.collective = {"all_reduce", "dp", 7, {rank}, {}};
  failure.log = "log/r0001.txt";
  return failure;
}

}  // namespace

TEST_CASE("a signal that left no rank alive to report it is noted by its parent") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "failure.json";
  const auto began = std::chrono::system_clock::now();
  record::note_end_of_task(folder.path(), "signal SIGKILL", began);
  auto json = base::value_or_throw(base::read_json_file(file));
  CHECK(json["cause"] == "a rank was ended by signal SIGKILL, and no rank said why");
  CHECK(json["end_of_task"] == "signal SIGKILL");
  CHECK(json["exit_code"] == 5);
  CHECK_FALSE(json.contains("first_failing_rank"));
  // A later start finds it, as a failure of an earlier one.
  const auto later = began + std::chrono::hours(1);
  record::note_end_of_task(folder.path(), "signal SIGSEGV", later);
  CHECK((*base::read_json_file(file))["end_of_task"] == "signal SIGSEGV");
  CHECK((*base::read_json_file(folder.path() / "failure-1.json"))["end_of_task"] ==
        "signal SIGKILL");
  // A rank's own word stays.
  std::filesystem::remove(file);
  record::write_failure(failure_of(2), folder.path());
  record::note_end_of_task(folder.path(), "signal SIGKILL", began);
  json = base::value_or_throw(base::read_json_file(file));
  CHECK(json["first_failing_rank"] == 2);
  CHECK(json["end_of_task"] == "signal SIGKILL");
  const auto none = folder.path() / "none";
  record::note_end_of_task(none, "signal SIGKILL", began);
  CHECK_FALSE(std::filesystem::exists(none));
}

TEST_CASE("a start that died beside the one that holds the run leaves the run's files alone") {
  const tests::TemporaryFolder folder;
  const auto lock = base::value_or_throw(record::RunLock::take(folder.path(), ""));
  const auto later = std::chrono::system_clock::now() + std::chrono::seconds(1);
  record::note_end_of_task(folder.path(), "signal SIGKILL", later);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "failure.json"));
  // Nor is what the holder has noted meanwhile another's end.
  std::this_thread::sleep_for(std::chrono::milliseconds(5));
  const auto waiting = std::chrono::system_clock::now();
  record::write_failure(failure_of(2), folder.path());
  record::note_end_of_task(folder.path(), "signal SIGKILL", waiting);
  CHECK_FALSE(base::read_json_file(folder.path() / "failure.json")->contains("end_of_task"));
  std::filesystem::remove(folder.path() / "failure.json");
  // This start's own lock, which a file system keeps for a while.
  const auto before = later - std::chrono::seconds(10);
  record::note_end_of_task(folder.path(), "signal SIGKILL", before);
  CHECK(std::filesystem::exists(folder.path() / "failure.json"));
}

TEST_CASE("failure.json of an earlier start is put aside, so that this one can leave its own") {
  const tests::TemporaryFolder folder;
  const auto cause_of = [&](const char* name) {
    return (*base::read_json_file(folder.path() / name))["first_failing_rank"].get<int>();
  };
  record::put_failure_aside(folder.path());
  record::write_failure(failure_of(2), folder.path());
  record::put_failure_aside(folder.path());
  record::write_failure(failure_of(1), folder.path());
  CHECK(cause_of("failure-1.json") == 2);
  CHECK(cause_of("failure.json") == 1);
  record::put_failure_aside(folder.path());
  CHECK(cause_of("failure-2.json") == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "failure.json"));
}

TEST_CASE("failure.json holds the first cause, whoever comes later") {
  const tests::TemporaryFolder folder;
  record::write_failure(failure_of(2), folder.path());
  record::write_failure(failure_of(3), folder.path());
  const auto json = base::read_json_file(folder.path() / "failure.json");
  REQUIRE(json.ok());
  CHECK((*json)["first_failing_rank"] == 2);
  CHECK((*json)["exit_code"] == 5);
  CHECK((*json)["host"] == "n1");
  CHECK((*json)["log"] == "log/r0001.txt");
  CHECK((*json)["collective"]["operation"] == "all_reduce");
  CHECK((*json)["collective"]["group"] == "dp");
  CHECK((*json)["collective"]["number"] == 7);
  CHECK((*json)["collective"]["missing_ranks"] == base::Json({2}));
  CHECK_FALSE((*json)["collective"].contains("account"));
  // Nothing else stays behind.
  CHECK(std::distance(std::filesystem::directory_iterator(folder.path()), {}) == 1);
}

TEST_CASE("a cause that is no UTF-8 is written down all the same") {
  const tests::TemporaryFolder folder;
  auto failure = failure_of(2);
  failure.cause =
      "rank 2 cannot open '/data/b\xfc"
      "cher'";
  CHECK_NOTHROW(record::write_failure(failure, folder.path()));
  const auto json = base::read_json_file(folder.path() / "failure.json");
  REQUIRE(json.ok());
  CHECK((*json)["cause"].get<std::string>().find("rank 2 cannot open '/data/b") == 0);
}

namespace {

/// exit_code of RUN/failure.json after `rank` has written `failure`.
int written_by(int rank, const record::Failure& failure, const std::filesystem::path& run) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): configure() changes the original.
  const auto before = base::log::settings();
  auto settings = before;
  settings.identity.rank = rank;
  base::log::configure(settings);
  record::write_failure(failure, run);
  base::log::configure(before);
  return (*base::read_json_file(run / "failure.json"))["exit_code"].get<int>();
}

}  // namespace

TEST_CASE("the rank that failed has the last word over those that heard of it") {
  const std::string bytes =
      "cannot read '/data/b\xfc"
      "cher'";
  const std::string text = GENERATE_COPY(failure_of(2).cause, bytes, std::string(900, 'x'));
  const tests::TemporaryFolder folder;
  auto own = failure_of(2);
  own.exit_code = 6;
  own.cause = text;
  auto heard = failure_of(2);
  // Notifications are cut to 511 bytes.
  heard.cause = text.substr(0, 511);
  CHECK(written_by(1, heard, folder.path()) == 5);
  CHECK(written_by(2, own, folder.path()) == 6);
  CHECK(written_by(1, heard, folder.path()) == 6);
  // Another failure of its own came later than the first cause.
  own.cause = "rank 2 fails once more";
  own.exit_code = 4;
  CHECK(written_by(2, own, folder.path()) == 6);
}

TEST_CASE("what NCCL says of a failed operation is kept with it") {
  const tests::TemporaryFolder folder;
  auto failure = failure_of(2);
  failure.collective->account = {"NCCL warned: link down", "RAS: DEAD"};
  record::write_failure(failure, folder.path());
  const auto json = base::read_json_file(folder.path() / "failure.json");
  REQUIRE(json.ok());
  CHECK((*json)["collective"]["account"] == base::Json({"NCCL warned: link down", "RAS: DEAD"}));
}

TEST_CASE("a failure outside of any collective says null") {
  const tests::TemporaryFolder folder;
  record::Failure failure;
  failure.cause = "rank 0 failed";
  failure.exit_code = 70;
  record::write_failure(failure, folder.path());
  const auto json = base::read_json_file(folder.path() / "failure.json");
  REQUIRE(json.ok());
  CHECK((*json)["collective"].is_null());
  CHECK((*json)["exit_code"] == 70);
}

TEST_CASE("a run directory that cannot be written does not hide the failure") {
  CHECK_NOTHROW(record::write_failure(failure_of(1), "/dev/null/folder"));
}

TEST_CASE("a failure makes no run directory where there is none") {
  const tests::TemporaryFolder folder;
  const auto run = folder.path() / "runs" / "a";
  record::write_failure(failure_of(2), run);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
}

TEST_CASE("a failure is read as it was written") {
  const tests::TemporaryFolder folder;
  CHECK_FALSE((*record::read_failure(record::failure_of_run(folder.path()))).has_value());
  auto failure = failure_of(2);
  failure.first_task = 5;
  failure.collective->account = {"NCCL warned: link down"};
  record::write_failure(failure, folder.path());
  const auto read = record::read_failure(folder.path() / "failure.json");
  REQUIRE(read.ok());
  REQUIRE(*read);
  CHECK((*read)->cause == failure.cause);
  CHECK((*read)->exit_code == 5);
  CHECK((*read)->first_rank == 2);
  CHECK((*read)->first_task == 5);
  CHECK((*read)->host == "n1");
  CHECK((*read)->collective->missing_ranks == std::vector<std::int64_t>{2});
  CHECK((*read)->collective->account == failure.collective->account);
  CHECK((*read)->log == "log/r0001.txt");
  CHECK((*read)->time_ms > 0);
  CHECK((*read)->end_of_task.empty());
  std::ofstream(folder.path() / "failure.json") << "[]";
  CHECK_FALSE(record::read_failure(folder.path() / "failure.json").ok());
}
