// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/failure.hpp"

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

TEST_CASE("the last line names the task where the launcher numbers ranks otherwise") {
  auto failure = failure_of(2);
  failure.first_task = 2;
  CHECK(runtime::last_line(failure, "l").find("first failing rank 2 on n1") != std::string::npos);
  failure.first_task = 5;
  CHECK(runtime::last_line(failure, "l").find("first failing rank 2 (task 5) on n1") !=
        std::string::npos);
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

TEST_CASE("failure.json holds who failed first, where, and in which operation") {
  auto failure = failure_of(2);
  failure.absence.account = {"NCCL warned: link down"};
  const auto recorded = runtime::recorded(failure, "log/r0001.txt");
  CHECK(recorded.cause == failure.cause);
  CHECK(recorded.exit_code == 5);
  CHECK(recorded.first_rank == 2);
  CHECK_FALSE(recorded.first_task);
  CHECK(recorded.host == "n1");
  CHECK(recorded.log == "log/r0001.txt");
  REQUIRE(recorded.collective);
  CHECK(recorded.collective->operation == "all_reduce");
  CHECK(recorded.collective->group == "dp");
  CHECK(recorded.collective->number == 7);
  CHECK(recorded.collective->missing_ranks == std::vector<std::int64_t>{2});
  CHECK(recorded.collective->account == failure.absence.account);
  failure.first_task = 5;
  CHECK(runtime::recorded(failure, "").first_task == 5);
  CHECK_FALSE(runtime::recorded({}, "").collective);
  CHECK(runtime::recorded({}, "").exit_code == 70);
}
