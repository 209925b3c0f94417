// SPDX-License-Identifier: Apache-2.0
// Processes that a launcher has started, or seems to have.
#include "apps/local_ranks.hpp"
#include "support/temporary_folder.hpp"
#include "unit/apps/trireme_program.hpp"

#include <catch2/catch.hpp>

#include <filesystem>

using namespace trireme::tests;
namespace apps = trireme::apps;
namespace base = trireme::base;

namespace {

/// The same program as a child of a process that is called as mpirun's daemon is.
ProgramStart below_mpirun(ProgramStart start, const TemporaryFolder& folder) {
  const auto daemon = folder.path() / "orted";
  if (!std::filesystem::exists(daemon)) std::filesystem::create_symlink("/bin/sh", daemon);
  std::vector<std::string> arguments{"-c", R"("$0" "$@"; exit $?)", start.program.string()};
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  start.program = daemon;
  start.arguments = std::move(arguments);
  return start;
}

}  // namespace

TEST_CASE("every rank but the first says nothing of a command line that none can use") {
  const TemporaryFolder folder;
  const auto run_as = [&](const char* rank, std::vector<std::string> arguments) {
    auto start = trireme_start(std::move(arguments));
    start.environment = {{"OMPI_COMM_WORLD_SIZE", "2"},
                         {"OMPI_COMM_WORLD_RANK", rank},
                         {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
                         {"OMPI_COMM_WORLD_LOCAL_RANK", rank}};
    return run_program(below_mpirun(start, folder));
  };
  const auto first = run_as("0", {"train", "--nonsense"});
  const auto second = run_as("1", {"train", "--nonsense"});
  CHECK(first.exit_code == 2);
  CHECK(first.err.find("nonsense") != std::string::npos);
  CHECK(second.exit_code == 2);
  CHECK(second.err.empty());
  CHECK(run_as("1", {"train", "--set", "train.stesp=5"}).err.empty());
  CHECK(run_as("1", {"--help"}).out.empty());
  CHECK_FALSE(run_as("0", {"--help"}).out.empty());
}

TEST_CASE("help and version need no MPI, and come once from many ranks") {
  const TemporaryFolder folder;
  // MPI cannot start here: a launcher is announced that is not there.
  auto start = trireme_start({"bench", "comm", "--bytes", "1KiB"});
  start.environment["OMPI_MCA_pml"] = "absent";
  start.environment["OMPI_MCA_orte_base_help_aggregate"] = "0";
  CHECK(run_program(start).exit_code != 0);
  for (const auto& arguments : std::vector<std::vector<std::string>>{
           {"--help"}, {"train", "--help"}, {"bench", "comm", "--help"}, {"--version"}}) {
    INFO(arguments.front());
    start.arguments = arguments;
    start.environment["OMPI_COMM_WORLD_SIZE"] = "2";
    start.environment["OMPI_COMM_WORLD_RANK"] = "0";
    const auto first = run_program(below_mpirun(start, folder));
    CHECK(first.exit_code == 0);
    CHECK(first.out == run_trireme(arguments).out);
    CHECK_FALSE(first.out.empty());
    start.environment["OMPI_COMM_WORLD_RANK"] = "1";
    const auto second = run_program(below_mpirun(start, folder));
    CHECK(second.exit_code == 0);
    CHECK(second.out.empty());
    CHECK(second.err.empty());
  }
}

TEST_CASE("variables of a launcher that did not start this process hide no answer") {
  for (const auto& variables : std::vector<std::map<std::string, std::string>>{
           {{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}},
           {{"PMIX_RANK", "2"}},
           {{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}},
           {{"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}}}) {
    CAPTURE(variables);
    for (const auto* question : {"--version", "--help"}) {
      auto start = trireme_start({question});
      start.environment.insert(variables.begin(), variables.end());
      CHECK(run_program(start).out == run_trireme({question}).out);
    }
  }
}

TEST_CASE("a process that no launcher started may start ranks, whatever variables it inherited") {
  const base::Environment inherited({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "2"}});
  CHECK(apps::may_start_ranks(2, inherited).ok());
  const base::Environment unknown({{"PMI_SIZE", "4"}, {"PMI_RANK", "2"}});
  CHECK_FALSE(apps::may_start_ranks(2, unknown).ok());
}
