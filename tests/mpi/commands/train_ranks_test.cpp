// SPDX-License-Identifier: Apache-2.0
// `trireme train --ranks N` starts its ranks itself.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr const char* configuration = TRIREME_SOURCE_DIR "/configs/debug-tiny.conf";

/// A run over made-up tokens in `folder`.
struct Run {
  explicit Run(const TemporaryFolder& folder) : directory(folder.path() / "run") {
    const auto prefix = folder.path() / "tokens";
    write_tokens(prefix, made_up_tokens(4000, 512));
    settings = {"data.train=" + prefix.string(), "run.directory=" + directory.string(),
                "train.steps=2", "parallel.tensor=2"};
  }

  ProgramStart start(const std::string& ranks, const std::vector<std::string>& more = {}) const {
    auto all = settings;
    all.insert(all.end(), more.begin(), more.end());
    return {.program = TRIREME_EXECUTABLE,
            .arguments = with_settings({"train", configuration, "--ranks", ranks}, all),
            .timeout_seconds = 120};
  }

  std::filesystem::path directory;
  std::vector<std::string> settings;
};

std::size_t count_of(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("train --ranks trains as mpirun does, more ranks than cores included") {
  const TemporaryFolder folder;
  const Run run(folder);
  const auto end = run_program(run.start("4"));
  INFO(end.err);
  REQUIRE(end.exit_code == 0);
  CHECK(says(end.err, "/0004 "));
  const auto mine = metrics(run.directory, "train");
  std::filesystem::remove_all(run.directory);
  done_on_ranks(4, with_settings({"train", configuration}, run.settings));
  const auto theirs = metrics(run.directory, "train");
  REQUIRE(mine.size() == 2);
  REQUIRE(theirs.size() == 2);
  for (std::size_t step = 0; step < 2; ++step) {
    CHECK(mine[step]["loss"] == theirs[step]["loss"]);
    CHECK(mine[step]["grad_norm"] == theirs[step]["grad_norm"]);
  }
}

TEST_CASE("exit codes of ranks that train --ranks started come through") {
  const TemporaryFolder folder;
  const Run run(folder);
  // Known before there are ranks: said once.
  auto end = run_program(run.start("2", {"train.stesp=5"}));
  CHECK(end.exit_code == 2);
  CHECK(count_of(end.err, "train.stesp=5:") == 1);
  // Known to the ranks alone.
  end = run_program(run.start("2", {"parallel.tensor=4"}));
  INFO(end.err);
  CHECK(end.exit_code == 3);
  end = run_program(run.start("2", {"data.train=/absent"}));
  INFO(end.err);
  CHECK(end.exit_code == 6);
  // mpirun's own words about the ranks that failed are not needed.
  CHECK_FALSE(says(end.err, "mpirun detected"));
}

TEST_CASE("train --ranks writes the page of a run that has failed, which begins with the cause") {
  const TemporaryFolder folder;
  const Run run(folder);
  const auto page = run.directory / "report.html";
  // Before the run is this start's own nothing is written.
  CHECK(run_program(run.start("2", {"data.train=/absent"})).exit_code == 6);
  CHECK_FALSE(std::filesystem::exists(page));
  const auto end = run_program(
      run.start("2", {"train.steps=60", "optimizer.learning_rate=1e5", "optimizer.clip_norm=0"}));
  INFO(end.err);
  CHECK(end.exit_code == 6);
  const auto text = base::value_or_throw(base::read_text_file(page));
  CHECK(says(text, "<main>\n<section id=\"cause\">"));
  CHECK(says(text, "finite"));
  // A later start that fails before it has touched the run leaves a good run's page alone.
  std::filesystem::remove_all(run.directory);
  REQUIRE(run_program(run.start("2")).exit_code == 0);
  std::filesystem::remove(page);
  CHECK(run_program(run.start("2", {"data.train=/absent"})).exit_code == 6);
  CHECK_FALSE(std::filesystem::exists(page));
}

TEST_CASE("a signal to train --ranks saves, ends with 75, and the run goes on from there") {
  const TemporaryFolder folder;
  const Run run(folder);
  for (const auto* signal : {"TERM", "INT"}) {
    auto start = run.start("2", {"train.steps=1000000", "train.log_every=1000"});
    // As from a terminal: asynchronous commands of a script would ignore SIGINT.
    std::string script =
        "import signal, subprocess, sys, time, os\n"
        "run = subprocess.Popen(sys.argv[3:])\n"
        "path = sys.argv[2] + '/metrics.jsonl'\n"
        "size = lambda: os.path.getsize(path) if os.path.exists(path) else 0\n"
        "before = size()\n"
        "while size() < before + 2000 and run.poll() is None: time.sleep(0.02)\n"
        "run.send_signal(getattr(signal, 'SIG' + sys.argv[1]))\n"
        "sys.exit(run.wait())\n";
    std::vector<std::string> arguments{"-c", script, signal, run.directory.string(),
                                       start.program.string()};
    arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
    start.arguments = arguments;
    start.program = "/usr/bin/python3";
    const auto end = run_program(start);
    INFO(signal << ": " << end.err);
    CHECK(end.exit_code == 75);
    CHECK(says(end.err, "start again to continue"));
    CHECK(says(end.err, std::string("SIG") + signal + ": the ranks are asked to save and stop"));
  }
  const auto saves = metrics(run.directory, "save");
  REQUIRE(saves.size() == 2);
  CHECK(saves[1]["step"] > saves[0]["step"]);
}

TEST_CASE("a rank of train --ranks that a signal ends makes 5, and why names the signal") {
  const TemporaryFolder folder;
  const Run run(folder);
  auto start = run.start("2", {"train.steps=1000000", "train.log_every=1000"});
  // Ranks are the children of the child. All of /proc is not read for them: processes of other
  // tests come and go there.
  // The address sanitizer would make an exit of the signal.
  const std::string script =
      "import os, signal, subprocess, sys, time\n"
      "os.environ['ASAN_OPTIONS'] = os.environ.get('ASAN_OPTIONS', '') + ':handle_segv=0'\n"
      "run = subprocess.Popen(sys.argv[2:])\n"
      "def children(pid):\n"
      "  return [int(child) for thread in os.listdir(f'/proc/{pid}/task')\n"
      "          for child in open(f'/proc/{pid}/task/{thread}/children').read().split()]\n"
      "path = sys.argv[1] + '/metrics.jsonl'\n"
      "size = lambda: os.path.getsize(path) if os.path.exists(path) else 0\n"
      "while size() < 2000 and run.poll() is None: time.sleep(0.02)\n"
      "os.kill(max(children(children(run.pid)[0])), signal.SIGSEGV)\n"
      "sys.exit(run.wait())\n";
  std::vector<std::string> arguments{"-c", script, run.directory.string(), start.program.string()};
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  start.arguments = arguments;
  start.program = "/usr/bin/python3";
  const auto end = run_program(start);
  INFO(end.err);
  CHECK(end.exit_code == 5);
  CHECK(says(end.err, "a rank was ended by signal SIGSEGV"));
  const auto why =
      run_program({.program = TRIREME_EXECUTABLE, .arguments = {"why", run.directory.string()}});
  INFO(why.out);
  CHECK(says(why.out, "ended by signal SIGSEGV"));
}

TEST_CASE("train --ranks says what mpirun lacks") {
  const TemporaryFolder folder;
  const Run run(folder);
  auto start = run.start("2");
  folder.write("file", "no folder");
  start.environment["TMPDIR"] = (folder.path() / "file").string();
  const auto end = run_program(start);
  INFO(end.err);
  CHECK(end.exit_code == 3);
  CHECK(says(end.err, "TMPDIR=" + (folder.path() / "file").string() + " cannot be written"));
}

TEST_CASE("train --ranks starts ranks whatever an mpirun of before has left in the environment") {
  const TemporaryFolder folder;
  const Run run(folder);
  auto start = run.start("2");
  // As mpirun gives them to its ranks; the last one is a user's.
  for (const auto& [name, value] : std::map<std::string, std::string>{
           {"OMPI_COMM_WORLD_SIZE", "1"},
           {"OMPI_COMM_WORLD_RANK", "0"},
           {"OMPI_UNIVERSE_SIZE", "2"},
           {"OMPI_MCA_ess", "^singleton"},
           {"OMPI_MCA_ess_base_jobid", "1682178049"},
           {"OMPI_MCA_orte_hnp_uri", "1682178048.0;tcp://127.0.0.1:1"},
           {"PMIX_NAMESPACE", "1682178049"},
           {"PMIX_RANK", "0"},
           {"PMIX_SERVER_URI2", "1682178048.0;tcp4://127.0.0.1:1"},
           {"OMPI_MCA_mpi_yield_when_idle", "1"}}) {
    start.environment[name] = value;
  }
  const auto end = run_program(start);
  INFO(end.err);
  CHECK(end.exit_code == 0);
}

TEST_CASE("train --ranks is refused where ranks are another's to start") {
  const TemporaryFolder folder;
  const Run run(folder);
  auto start = run.start("2");
  start.environment["OMPI_COMM_WORLD_SIZE"] = "2";
  start.environment["OMPI_COMM_WORLD_RANK"] = "0";
  // An ancestor of that name, which is there until its child ends: variables alone are inherited.
  const auto launcher = folder.write("bin/mpirun", "#!/bin/sh\n\"$@\"\nexit $?\n");
  std::filesystem::permissions(launcher, std::filesystem::perms::owner_all);
  start.arguments.insert(start.arguments.begin(), start.program.string());
  start.program = launcher;
  auto end = run_program(start);
  CHECK(end.exit_code == 3);
  CHECK(says(end.err, "--ranks 2 does not go with mpirun, which has started this process already"));
  start = run.start("2");
  start.environment["SLURM_JOB_ID"] = "7";
  end = run_program(start);
  CHECK(end.exit_code == 3);
  CHECK(says(end.err, "start with srun --mpi=pmix -n 2 trireme train, without --ranks"));
  start = run.start("2");
  start.environment["PATH"] = "/absent";
  end = run_program(start);
  CHECK(end.exit_code == 3);
  CHECK(says(end.err, "mpirun was not found in PATH"));
  CHECK_FALSE(std::filesystem::exists(run.directory));
}
