// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/failure.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/log.hpp"
#include "trireme/runtime/run_lock.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

using namespace trireme;

namespace {

comm::RankFailure failure_of(int rank) {
  comm::RankFailure failure;
  failure.code = base::ExitCode::peer;
  failure.text = "all_reduce number 7 of process group 'dp' cannot finish: rank 2 died";
  failure.cause = "rank 2 (process 41 on n1)\ndied";
  failure.first = base::Rank(rank);
  failure.host = "n1";
  failure.absence = {"all_reduce", "dp", 7, {base::Rank(rank)}, "n1", 1.5, "rank 2 died"};
  return failure;
}

}  // namespace

TEST_CASE("the last line names cause, first failing rank, host and log") {
  const auto line = runtime::last_line(failure_of(2), "runs/a/log/r0001.txt");
  CHECK(line ==
        "trireme: failed with exit code 5: rank 2 (process 41 on n1) died; first failing rank 2 "
        "on n1; log: runs/a/log/r0001.txt");
}

TEST_CASE("the last line is UTF-8 whatever it names") {
  auto failure = failure_of(2);
  failure.cause = "cannot open '/w\xe9'";
  const auto line = runtime::last_line(failure, "/w\xe9/log");
  CHECK(line.find("cannot open '/w\uFFFD'") != std::string::npos);
  CHECK(line.ends_with("log: /w\uFFFD/log"));
}

TEST_CASE("a signal that left no rank alive to report it is noted by its parent") {
  const tests::TemporaryFolder folder;
  const auto file = folder.path() / "failure.json";
  const auto began = std::chrono::system_clock::now();
  runtime::note_end_of_task(folder.path(), "signal SIGKILL", began);
  auto json = base::value_or_throw(base::read_json_file(file));
  CHECK(json["cause"] == "a rank was ended by signal SIGKILL, and no rank said why");
  CHECK(json["end_of_task"] == "signal SIGKILL");
  CHECK(json["exit_code"] == 5);
  CHECK_FALSE(json.contains("first_failing_rank"));
  // A later start finds it, as a failure of an earlier one.
  const auto later = began + std::chrono::hours(1);
  runtime::note_end_of_task(folder.path(), "signal SIGSEGV", later);
  CHECK((*base::read_json_file(file))["end_of_task"] == "signal SIGSEGV");
  CHECK((*base::read_json_file(folder.path() / "failure-1.json"))["end_of_task"] ==
        "signal SIGKILL");
  // A rank's own word stays.
  std::filesystem::remove(file);
  runtime::write_failure(failure_of(2), {folder.path(), ""});
  runtime::note_end_of_task(folder.path(), "signal SIGKILL", began);
  json = base::value_or_throw(base::read_json_file(file));
  CHECK(json["first_failing_rank"] == 2);
  CHECK(json["end_of_task"] == "signal SIGKILL");
  const auto none = folder.path() / "none";
  runtime::note_end_of_task(none, "signal SIGKILL", began);
  CHECK_FALSE(std::filesystem::exists(none));
}

TEST_CASE("a start that died beside the one that holds the run leaves the run's files alone") {
  const tests::TemporaryFolder folder;
  const auto lock = base::value_or_throw(runtime::RunLock::take(folder.path(), ""));
  const auto later = std::chrono::system_clock::now() + std::chrono::seconds(1);
  runtime::note_end_of_task(folder.path(), "signal SIGKILL", later);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "failure.json"));
  // This start's own lock, which a file system keeps for a while.
  const auto before = later - std::chrono::seconds(10);
  runtime::note_end_of_task(folder.path(), "signal SIGKILL", before);
  CHECK(std::filesystem::exists(folder.path() / "failure.json"));
}

TEST_CASE("failure.json of an earlier start is put aside, so that this one can leave its own") {
  const tests::TemporaryFolder folder;
  const auto cause_of = [&](const char* name) {
    return (*base::read_json_file(folder.path() / name))["first_failing_rank"].get<int>();
  };
  runtime::put_failure_aside(folder.path());
  runtime::write_failure(failure_of(2), {folder.path(), ""});
  runtime::put_failure_aside(folder.path());
  runtime::write_failure(failure_of(1), {folder.path(), ""});
  CHECK(cause_of("failure-1.json") == 2);
  CHECK(cause_of("failure.json") == 1);
  runtime::put_failure_aside(folder.path());
  CHECK(cause_of("failure-2.json") == 1);
  CHECK_FALSE(std::filesystem::exists(folder.path() / "failure.json"));
}

TEST_CASE("the last line names the task where the launcher numbers ranks otherwise") {
  auto failure = failure_of(2);
  failure.first_task = 2;
  CHECK(runtime::last_line(failure, "l").find("first failing rank 2 on n1") != std::string::npos);
  failure.first_task = 5;
  CHECK(runtime::last_line(failure, "l").find("first failing rank 2 (task 5) on n1") !=
        std::string::npos);
}

TEST_CASE("failure.json holds the first cause, whoever comes later") {
  const tests::TemporaryFolder folder;
  runtime::write_failure(failure_of(2), {folder.path(), "log/r0001.txt"});
  runtime::write_failure(failure_of(3), {folder.path(), ""});
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
  CHECK_NOTHROW(runtime::write_failure(failure, {folder.path(), ""}));
  const auto json = base::read_json_file(folder.path() / "failure.json");
  REQUIRE(json.ok());
  CHECK((*json)["cause"].get<std::string>().find("rank 2 cannot open '/data/b") == 0);
}

namespace {

/// exit_code of RUN/failure.json after `rank` has written `failure`.
int written_by(int rank, const comm::RankFailure& failure, const std::filesystem::path& run) {
  // NOLINTNEXTLINE(performance-unnecessary-copy-initialization): configure() changes the original.
  const auto before = base::log::settings();
  auto settings = before;
  settings.identity.rank = rank;
  base::log::configure(settings);
  runtime::write_failure(failure, {run, ""});
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
  own.code = base::ExitCode::checkpoint;
  own.cause = text;
  auto heard = failure_of(2);
  // Notifications are cut to 511 bytes.
  heard.cause = text.substr(0, 511);
  CHECK(written_by(1, heard, folder.path()) == 5);
  CHECK(written_by(2, own, folder.path()) == 6);
  CHECK(written_by(1, heard, folder.path()) == 6);
  // Another failure of its own came later than the first cause.
  own.cause = "rank 2 fails once more";
  own.code = base::ExitCode::topology;
  CHECK(written_by(2, own, folder.path()) == 6);
}

TEST_CASE("the last line tells how many ranks failed alike") {
  auto failure = failure_of(0);
  failure.cause = "too few cores";
  failure.failed_count = 24;
  CHECK(
      runtime::last_line(failure, "l") ==
      "trireme: failed with exit code 5: too few cores; 24 ranks failed alike; first failing rank "
      "0 on n1; log: l");
}

TEST_CASE("what NCCL says of a failed operation is kept with it") {
  const tests::TemporaryFolder folder;
  auto failure = failure_of(2);
  failure.absence.account = {"NCCL warned: link down", "RAS: DEAD"};
  runtime::write_failure(failure, {folder.path(), ""});
  const auto json = base::read_json_file(folder.path() / "failure.json");
  REQUIRE(json.ok());
  CHECK((*json)["collective"]["account"] == base::Json({"NCCL warned: link down", "RAS: DEAD"}));
}

TEST_CASE("a failure outside of any collective says null") {
  const tests::TemporaryFolder folder;
  comm::RankFailure failure;
  failure.cause = "rank 0 failed";
  runtime::write_failure(failure, {folder.path(), ""});
  const auto json = base::read_json_file(folder.path() / "failure.json");
  REQUIRE(json.ok());
  CHECK((*json)["collective"].is_null());
  CHECK((*json)["exit_code"] == 70);
}

TEST_CASE("a run directory that cannot be written does not hide the failure") {
  CHECK_NOTHROW(runtime::write_failure(failure_of(1), {"/dev/null/folder", ""}));
}

TEST_CASE("a failure makes no run directory where there is none") {
  const tests::TemporaryFolder folder;
  const auto run = folder.path() / "runs" / "a";
  runtime::write_failure(failure_of(2), {run, ""});
  CHECK_FALSE(std::filesystem::exists(folder.path() / "runs"));
}
