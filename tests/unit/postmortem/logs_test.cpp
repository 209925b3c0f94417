// SPDX-License-Identifier: Apache-2.0
// Logs of many ranks.
#include "trireme/base/format.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include "postmortem/start_lines.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

using namespace trireme;

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

TEST_CASE("of logs of many ranks the ends are read, and one note says so") {
  const tests::TemporaryFolder run;
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
  const tests::TemporaryFolder run;
  write_logs(run.path(), 4, -1);
  std::vector<std::string> notes;
  const auto lines = postmortem::read_logs(run.path(), postmortem::Attempts::last, notes);
  CHECK(postmortem::ranks_of_tasks(lines) == std::map<int, int>{{0, 3}, {1, 2}, {2, 1}, {3, 0}});
  CHECK(postmortem::job_of(lines) == "12.0");
  CHECK(postmortem::job_of_run(run.path()) == "12.0");
  CHECK(postmortem::ranks_of_tasks({}).empty());
  CHECK(postmortem::job_of({}).empty());
}
