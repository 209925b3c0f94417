// SPDX-License-Identifier: Apache-2.0
#include "trireme/postmortem/postmortem.hpp"

#include "trireme/base/format.hpp"
#include "trireme/record/task_record.hpp"

#include "unit/postmortem/hand_made_run.hpp"

#include <catch2/catch.hpp>

#include <csignal>

using namespace trireme;
using namespace trireme::tests;
using postmortem::Attempts;
using postmortem::Ending;
using postmortem::Postmortem;

namespace {

record::TaskRecord record_of(std::uint32_t rank, int wait_status, std::int64_t time) {
  record::TaskRecord record;
  record.time_ms = time * 1000;
  record.job = 12;
  record.node = base::format("n{}", rank / 2);
  record.rank = rank;
  record.process = 100 + rank;
  record.wait_status = wait_status;
  return record;
}

bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

const char* const killed = R"json({
  "cause": "rank 2 (process 4711 on n1) died without a word, computing (killed by a signal)",
  "exit_code": 5, "first_failing_rank": 2, "first_failing_task": 1, "host": "n1",
  "collective": {"operation": "all_reduce", "group": "tp", "number": 7, "missing_ranks": [2]},
  "log": "run/log/r0003.txt", "time": "2026-11-21T09:37:34Z"})json";

}  // namespace

TEST_CASE("a killed rank's postmortem has cause, who, when, what others did, and what to do") {
  const HandMadeRun run;
  run.event("start");
  run.step(1, 5.5);
  run.step(2, 5.25);
  run.write("failure.json", killed);
  for (int rank = 0; rank < 4; ++rank) run.start(rank, 30, rank == 2 ? 1 : rank);
  run.say(3, 34.25, "error", "comm: all_reduce number 7 of process group 'tp' cannot finish");
  run.say(0, 34.5, "error", "comm: receive from rank 2 cannot finish");
  run.say(0, 34.6, "error", "comm: a second word is its end");
  auto memory = record_of(1, SIGKILL, minute + 34);
  memory.out_of_memory = record::OutOfMemory::likely;
  run.write("log/tasks.n1.jsonl", record::record_line(memory) + "\nno record\n" +
                                      record::record_line(record_of(0, 5 << 8, minute + 35)) +
                                      "\n");

  const auto postmortem = run.postmortem({}, {1, 1, {}});
  CHECK(postmortem.ending == Ending::failed);
  CHECK(postmortem.exit_code == 5);
  CHECK(postmortem.job == "12.0");
  REQUIRE(postmortem.cause);
  CHECK(postmortem.cause->rank == 2);
  CHECK(postmortem.cause->task == 1);
  CHECK(postmortem.cause->host == "n1");
  CHECK(postmortem.cause->end_of_task == "signal SIGKILL, likely out of memory");
  CHECK(postmortem.cause->time_ms == minute * 1000 + 34250);
  REQUIRE(postmortem.events.size() == 3);
  CHECK(postmortem.events[0].who == "rank 3 on n1");
  CHECK(postmortem.events[1].who == "rank 0 on n0");
  CHECK(postmortem.events[2].what == "exit code 5");
  CHECK(postmortem.last_step == 2);
  CHECK(postmortem.newest_checkpoint == 1);
  REQUIRE(postmortem.advice.size() == 2);
  CHECK(holds(postmortem.advice[0], "killed it for memory"));
  CHECK(holds(postmortem.advice[1], "step 1: trireme train --resume " + run.path().string()));

  const auto text = postmortem::text_of(postmortem);
  CHECK(holds(text, "failed with exit code 5"));
  CHECK(holds(text, "rank 2 (task 1) on n1"));
  CHECK(holds(text, "all_reduce number 7 of process group 'tp', missing ranks: 2"));
  CHECK(holds(text, "+0.250 s  rank 0 on n0"));
  const auto json = postmortem::to_json(postmortem);
  CHECK(json["cause"]["rank"] == 2);
  CHECK(json["events"].size() == 3);
}

TEST_CASE("a postmortem tells what NCCL said of the operation, and not more than it should") {
  const HandMadeRun run;
  run.event("start");
  std::string account = R"("NCCL warned: link \u001b down", 7, "RAS: DEAD")";
  for (int i = 0; i < 100; ++i) account += R"(, "RAS: more")";
  run.write("failure.json", base::format(R"({{"cause": "it hangs", "exit_code": 5,
    "first_failing_rank": 1, "host": "n1", "collective": {{"operation": "all_reduce",
    "group": "dp", "number": 3, "missing_ranks": [], "account": [{}]}}, "log": null}})",
                                         account));
  const auto postmortem = run.postmortem();
  REQUIRE(postmortem.cause);
  REQUIRE(postmortem.cause->account.size() == 40);
  CHECK(postmortem.cause->account[1] == "RAS: DEAD");
  const auto text = postmortem::text_of(postmortem);
  CHECK(holds(text, "NCCL says    NCCL warned: link ? down\n"));
  CHECK(holds(text, "\n             RAS: DEAD\n"));
  CHECK(postmortem::to_json(postmortem)["cause"]["account"][1] == "RAS: DEAD");
}

TEST_CASE("TCP that was refused is told with what to do") {
  const HandMadeRun run;
  run.event("start");
  run.write("failure.json",
            R"({"cause": "rank 0: NCCL moves data between nodes by TCP sockets, which is TCP",
    "exit_code": 4, "first_failing_rank": 0, "host": "n1", "collective": null, "log": null})");
  const auto postmortem = run.postmortem();
  REQUIRE(postmortem.advice.size() == 1);
  CHECK(holds(postmortem.advice[0], "comm.require_rdma"));
}

TEST_CASE("a task that died before the verdict and before all others is the first cause") {
  const auto postmortem_with = [](std::initializer_list<record::TaskRecord> records) {
    const HandMadeRun run;
    run.event("start");
    run.write("failure.json", killed);
    for (int rank = 0; rank < 4; ++rank) run.start(rank, 30, rank == 2 ? 1 : rank == 1 ? 2 : rank);
    for (const auto& record : records) {
      run.write("log/tasks.n1.jsonl", record::record_line(record) + "\n");
    }
    return run.postmortem();
  };
  const auto blamed = record_of(1, SIGKILL, minute + 33);
  auto first = record_of(2, SIGKILL, minute + 33);
  first.time_ms -= 200;
  const auto late = record_of(3, SIGKILL, minute + 35);

  const auto corrected = postmortem_with({blamed, first, late});
  REQUIRE(corrected.cause);
  CHECK(corrected.cause->rank == 1);
  CHECK(corrected.cause->task == 2);
  CHECK(corrected.cause->host == "n1");
  CHECK(corrected.cause->end_of_task == "signal SIGKILL");
  CHECK(holds(corrected.notes.back(), "failure.json says otherwise: rank 2"));

  // Deaths that follow the verdict are its consequence.
  const auto kept = postmortem_with({late});
  REQUIRE(kept.cause);
  CHECK(kept.cause->rank == 2);
}

TEST_CASE("where no rank could speak, the plugin's records name the first task that went wrong") {
  const HandMadeRun run;
  run.event("start");
  run.start(0, 1, 0);
  run.write("log/tasks.jsonl", record::record_line(record_of(3, SIGSEGV, minute + 20)) + "\n" +
                                   record::record_line(record_of(0, SIGKILL, minute + 22)) + "\n");
  const auto postmortem = run.postmortem();
  CHECK(postmortem.ending == Ending::failed);
  REQUIRE(postmortem.cause);
  CHECK(postmortem.cause->task == 3);
  CHECK(holds(postmortem.cause->text, "signal SIGSEGV"));
  CHECK(holds(postmortem.advice.front(), "a defect"));
}

TEST_CASE("records of earlier starts and of other jobs are another postmortem") {
  const HandMadeRun run;
  run.event("start");
  run.event("start");
  run.start(0, 1, 0);
  auto other = record_of(1, SIGKILL, minute);
  other.job = 11;
  auto last = record_of(0, SIGTERM, minute + 9);
  last.restart = 1;
  run.write("log/tasks.jsonl", record::record_line(other) + "\n" +
                                   record::record_line(record_of(3, SIGKILL, minute)) + "\n" +
                                   record::record_line(last) + "\n");
  const auto postmortem = run.postmortem();
  REQUIRE(postmortem.cause);
  CHECK(postmortem.cause->task == 0);
  CHECK(postmortem.starts == 2);
}

TEST_CASE("runs that finished or stopped say so, and errors of earlier starts do not count") {
  const HandMadeRun run;
  run.start(0, 1, 0);
  run.say(0, 2, "error", "comm: long ago");
  run.start(0, 10, 0);
  run.event("start");
  run.step(9, 1.5);
  run.event("stop");
  auto postmortem = run.postmortem();
  CHECK(postmortem.ending == Ending::stopped);
  CHECK(postmortem.events.empty());
  CHECK(holds(postmortem::text_of(postmortem), "stopped in good order"));
  run.event("start");
  run.event("done");
  CHECK(run.postmortem().ending == Ending::finished);
}

TEST_CASE("deaths of an earlier start with more ranks, and of a job, are another postmortem") {
  const HandMadeRun run;
  run.event("start");
  for (int rank = 0; rank < 4; ++rank) run.start(rank, 1, rank);
  for (int rank = 0; rank < 4; ++rank) run.say(rank, 5, "error", "comm: rank 2 died");
  run.write("log/tasks.n1.jsonl", record::record_line(record_of(2, SIGKILL, minute + 5)) + "\n");
  run.event("start");
  for (int rank = 0; rank < 2; ++rank) {
    run.say(rank, 9, "debug", base::format("runtime: rank {0} is task {0} of mpirun; CPUs 0", rank),
            2);
  }
  run.event("done");
  const auto postmortem = run.postmortem();
  CHECK(postmortem.ending == Ending::finished);
  CHECK(postmortem.events.empty());
  CHECK_FALSE(postmortem.cause);
  std::vector<std::string> notes;
  CHECK(postmortem::read_logs(run.path(), Attempts::all, notes).size() == 10);
}

TEST_CASE("a run that left no word is told from what Slurm says") {
  const HandMadeRun run;
  run.event("start");
  run.step(3, 2.0);
  run.start(0, 1, 0);
  const auto timeout = run.postmortem({"TIMEOUT", "TIMEOUT, exit code 0:0, nodes n1"});
  CHECK(timeout.ending == Ending::unknown);
  CHECK(holds(timeout.advice.front(), "run.signal_lead"));
  CHECK(holds(postmortem::text_of(timeout), "job 12.0: TIMEOUT"));
  CHECK(holds(run.postmortem().advice.front(), "under way, or all of it was killed"));
}

TEST_CASE("a full disk is helped by fewer checkpoints only where there are several") {
  const HandMadeRun run;
  run.start(0, 1, 0);
  run.say(0, 3, "error", "checkpoint: cannot write 'x': No space left on device");
  const auto advice = [&run](std::size_t checkpoints) {
    const auto told = run.postmortem({}, {checkpoints, std::nullopt, {}});
    return base::format("{}", base::join(told.advice, "\n"));
  };
  CHECK(holds(advice(1), "make room"));
  CHECK_FALSE(holds(advice(1), "checkpoint.keep_last"));
  CHECK(holds(advice(2), "checkpoint.keep_last"));
}

TEST_CASE("a file STOP is named where it would stop the next start") {
  const HandMadeRun run;
  run.event("start");
  run.event("stop");
  const auto advice = [&run] {
    return base::format("{}", base::join(run.postmortem().advice, "\n"));
  };
  CHECK_FALSE(holds(advice(), "STOP"));
  run.write("STOP", "");
  CHECK(holds(advice(), "STOP' first: it stops every start"));
}

TEST_CASE("the first error in a log is the cause where there is no failure.json") {
  const HandMadeRun run;
  run.start(1, 1, 1);
  run.say(1, 3, "error", "train: loss nan at step 3 is not finite");
  run.write("log/r0001.txt", "and a second line\n");
  run.say(0, 4, "warning", "comm: slow");
  const auto postmortem = run.postmortem();
  REQUIRE(postmortem.cause);
  CHECK(postmortem.cause->rank == 1);
  CHECK(holds(postmortem.cause->text, "a second line"));
  CHECK(holds(postmortem.advice.front(), "optimizer.clip_norm"));
}

TEST_CASE("what is broken in a run directory is noted, and the rest is told") {
  const HandMadeRun run;
  run.write("failure.json", "{\"cause\": ");
  run.write("metrics.jsonl", "garbage\n{\"kind\":7}\n[]\n");
  std::filesystem::create_directories(run.path() / "log/r0007.txt");
  const auto postmortem = run.postmortem();
  CHECK(postmortem.ending == Ending::unknown);
  REQUIRE(postmortem.notes.size() == 3);
  CHECK(holds(postmortem.notes[1], "metrics.jsonl has no step and no event"));
  run.write("log/r0000.txt", "\x1b[2J\xff\n");
  CHECK_FALSE(postmortem::examine(run.path() / "no-such", {}).ok());
}

TEST_CASE("failures of earlier starts are told in their order") {
  const HandMadeRun run;
  run.write("failure-1.json", R"({"cause": "first", "exit_code": 5})");
  run.write("failure-2.json", R"({"cause": "second", "time": "2026-11-21T09:37:34Z"})");
  run.write("failure-3.json", "{");
  const auto failures = postmortem::earlier_failures(run.path());
  REQUIRE(failures.size() == 2);
  CHECK(failures[0].cause.text == "first");
  CHECK(failures[0].exit_code == 5);
  CHECK(failures[1].cause.time_ms == minute * 1000 + 34'000);
}

TEST_CASE("the ending that a run itself has noted is that of its postmortem") {
  const HandMadeRun run;
  CHECK_FALSE(postmortem::is_run(run.path()));
  run.step(1, 2.0);
  CHECK(postmortem::is_run(run.path()));
  using telemetry::End;
  CHECK(postmortem::noted_ending(run.path(), End::none) == Ending::unknown);
  run.event("stop");
  CHECK(postmortem::noted_ending(run.path(), End::stopped) == Ending::stopped);
  CHECK(run.postmortem().ending == Ending::stopped);
  run.event("done");
  CHECK(postmortem::noted_ending(run.path(), End::done) == Ending::finished);
  CHECK(run.postmortem().ending == Ending::finished);
  run.write("failure.json", R"({"cause": "a", "exit_code": 5})");
  CHECK(postmortem::noted_ending(run.path(), End::done) == Ending::failed);
  CHECK(run.postmortem().ending == Ending::failed);
}

TEST_CASE("a terminal is shown no control characters of others") {
  const HandMadeRun run;
  run.write("failure.json", R"({"cause": "a\u001b[2Jb", "exit_code": 5, "host": "n1"})");
  CHECK(holds(postmortem::text_of(run.postmortem()), "a?[2Jb"));
}

TEST_CASE("sacct's answer is read by its first line") {
  const auto view =
      postmortem::parse_sacct("12|CANCELLED by 1000|0:15|n[1-2]\n12.0|FAILED|1:0|n1\n");
  CHECK(view.state == "CANCELLED");
  CHECK(view.detail == "CANCELLED by 1000, exit code 0:15, nodes n[1-2]");
  CHECK(postmortem::parse_sacct("").state.empty());
  CHECK(postmortem::parse_sacct("a|b").state.empty());
}

TEST_CASE("a start goes on after the newest step that can be used") {
  const HandMadeRun run;
  run.event("start");
  run.step(7, 2.0);
  const auto damaged = run.postmortem({}, {3, 4, {"step 6 is not usable: why"}});
  CHECK(damaged.newest_checkpoint == 4);
  REQUIRE(damaged.notes.size() == 1);
  CHECK(damaged.notes[0] == "step 6 is not usable: why");
  CHECK(holds(damaged.advice.back(), "goes on after step 4"));
  const auto none = run.postmortem({}, {2, std::nullopt, {"one", "other"}});
  CHECK_FALSE(none.newest_checkpoint);
  CHECK(none.notes.size() == 2);
  CHECK(holds(none.advice.back(), "no checkpoint is usable"));
  CHECK(holds(run.postmortem().advice.back(), "no checkpoint was committed"));
}
