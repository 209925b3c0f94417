// SPDX-License-Identifier: Apache-2.0
// Logs of all ranks of a run.
#include "postmortem/start_lines.hpp"
#include "unit/postmortem/hand_made_run.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
using postmortem::Attempts;

namespace {

/// Logs of so many ranks, of which each says "rank R is task T" and a warning; tasks are counted
/// downwards.
void write_logs(const std::filesystem::path& run, int ranks, int long_one) {
  std::filesystem::create_directories(run / "log");
  for (int rank = 0; rank < ranks; ++rank) {
    std::ofstream file(run / base::format("log/r{:04}.txt", rank));
    if (rank == long_one) file << std::string(std::size_t{5} << 20, '.') << "\n";
    const auto head = base::format("r{:04}/{:04} n0", rank, ranks);
    file << base::format(
        "2026-11-21T09:37:02.000Z debug   {} runtime: rank {} is task {} of srun in job 12.0; "
        "CPUs 0-3\n2026-11-21T09:37:03.000Z warning {} train: a word\n",
        head, rank, ranks - 1 - rank, head);
  }
}

}  // namespace

TEST_CASE("logs of all ranks are one, in the order of time") {
  const HandMadeRun run;
  run.say(1, 1.5, "info", "train: b");
  run.say(0, 1.25, "info", "train: a");
  run.say(0, 1.5, "info", "train: c, in the order of ranks where times are equal");
  run.start(0, 2, 0);
  run.say(0, 3, "info", "train: d");
  std::vector<std::string> notes;
  const auto all = postmortem::read_logs(run.path(), Attempts::all, notes);
  REQUIRE(all.size() == 5);
  CHECK(all[0].text == "a");
  CHECK(all[1].rank == 0);
  CHECK(all[2].text == "b");
  CHECK(postmortem::read_logs(run.path(), Attempts::last, notes).size() == 3);
  CHECK(notes.empty());
}

TEST_CASE("lines of a rank keep their order when its clock is set back") {
  const HandMadeRun run;
  for (const int rank : {0, 1}) {
    run.start(rank, 50, rank);
    run.say(rank, 52 + rank, "info", "train: first");
    run.start(rank, 10, rank);
    run.say(rank, 12 + rank, "info", "train: second");
    // A line of another thread.
    run.say(rank, 11.9 + rank, "info", "train: third");
  }
  std::vector<std::string> notes;
  std::vector<std::string> texts;
  for (const auto& line : postmortem::read_logs(run.path(), Attempts::all, notes)) {
    if (line.room == "train") texts.push_back(base::format("{}{}", line.text[0], line.rank));
  }
  CHECK(texts == std::vector<std::string>{"f0", "f1", "s0", "t0", "s1", "t1"});
}

TEST_CASE("a start stays whole though ranks join in it, and clocks are set back before it") {
  const HandMadeRun run;
  for (const int rank : {0, 1}) {
    run.start(rank, 50, rank);
    run.say(rank, 52 + rank, "info", "train: first");
  }
  for (const int rank : {0, 1, 2, 3}) {
    run.start(rank, 10, rank);
    run.say(rank, 12 + rank, "info", "train: second");
  }
  std::vector<std::string> notes;
  std::string texts;
  for (const auto& line : postmortem::read_logs(run.path(), Attempts::all, notes)) {
    if (line.room == "train") texts += base::format(" {}{}", line.text[0], line.rank);
  }
  CHECK(texts == " f0 f1 s0 s1 s2 s3");
}

TEST_CASE(
    "a clock that is set right in a start does not hide the first error behind its consequences") {
  const HandMadeRun run;
  run.start(0, 10, 0);
  run.start(1, 15, 1);
  // Five seconds fast until then.
  run.say(1, 40, "info", "train: a step");
  run.say(1, 36, "info", "train: a step");
  run.say(1, 50, "error", "data: no storage");
  run.say(0, 51, "error", "comm: rank 1 has ended");
  std::vector<std::string> notes;
  const auto lines = postmortem::read_logs(run.path(), Attempts::last, notes);
  const auto error = std::find_if(lines.begin(), lines.end(),
                                  [](const auto& line) { return line.level == "error"; });
  REQUIRE(error != lines.end());
  CHECK(error->rank == 1);
}

TEST_CASE("lines that no rank wrote are refused") {
  const std::string good = "2026-11-21T09:37:34.123Z info    r0003/0064 n7 comm: hello: you";
  const auto line = postmortem::parse_log_line(good);
  REQUIRE(line.ok());
  CHECK(line->time_ms == minute * 1000 + 34123);
  CHECK(line->rank == 3);
  CHECK(line->node == "n7");
  CHECK(line->room == "comm");
  CHECK(line->text == "hello: you");
  CHECK(postmortem::utc_text(line->time_ms) == "2026-11-21 09:37:34.123");
  for (std::size_t length = 0; length < good.find("comm") + 6; ++length) {
    CHECK_FALSE(postmortem::parse_log_line(good.substr(0, length)).ok());
  }
  CHECK_FALSE(
      postmortem::parse_log_line("2026-11-21T09:37:34.123Z loud    r0003/0064 n7 c: x").ok());
  CHECK_FALSE(
      postmortem::parse_log_line("2026-11-21T09:37:34.123Z info r99999999999/1 n7 c: x").ok());
}

TEST_CASE("of logs of many ranks the ends are read, and one note says so") {
  const TemporaryFolder run;
  write_logs(run.path(), 200, 7);
  std::vector<std::string> notes;
  const auto lines = postmortem::read_logs(run.path(), postmortem::Attempts::last, notes);
  CHECK(lines.size() == 400);
  REQUIRE(notes.size() == 1);
  CHECK_THAT(notes[0], Catch::StartsWith("of 1 log in "));
  // 512 MiB are shared by 200.
  CHECK_THAT(notes[0], Catch::EndsWith("only the last 2.56 MiB are read"));
}

TEST_CASE("the ranks of all tasks, and their job, are found in one pass over the logs") {
  const TemporaryFolder run;
  write_logs(run.path(), 4, -1);
  std::vector<std::string> notes;
  const auto lines = postmortem::read_logs(run.path(), postmortem::Attempts::last, notes);
  CHECK(postmortem::ranks_of_tasks(lines) == std::map<int, int>{{0, 3}, {1, 2}, {2, 1}, {3, 0}});
  CHECK(postmortem::job_of(lines) == "12.0");
  CHECK(postmortem::job_of_run(run.path()) == "12.0");
  CHECK(postmortem::ranks_of_tasks({}).empty());
  CHECK(postmortem::job_of({}).empty());
}
