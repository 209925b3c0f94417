// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/runtime/identity.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <sstream>
#include <string>
#include <vector>

using namespace trireme;
using runtime::Launcher;

namespace {

/// The environments that tests/golden/launch/record wrote for one way to start, by task.
std::vector<base::Environment> recorded(const std::string& way) {
  const auto text =
      base::read_text_file(std::string(TRIREME_SOURCE_DIR "/tests/golden/launch/") + way + ".env");
  REQUIRE(text.ok());
  std::vector<std::map<std::string, std::string, std::less<>>> tasks;
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (line.starts_with("[")) {
      tasks.emplace_back();
      continue;
    }
    const auto equals = line.find('=');
    REQUIRE(equals != std::string::npos);
    tasks.back().emplace(line.substr(0, equals), line.substr(equals + 1));
  }
  return {tasks.begin(), tasks.end()};
}

struct Expected {
  const char* way;
  Launcher launcher;
  int tasks;
  const char* job;
  /// None where nobody asked for a layout.
  const char* origin;
};

}  // namespace

TEST_CASE("tasks of every recorded way to start know who and how many they are") {
  const auto expected = GENERATE(values<Expected>({
      {"srun-pmix", Launcher::srun, 4, "1.0", "srun --tensor-parallel"},
      {"srun-pmi2", Launcher::srun, 4, "2.0", "srun --tensor-parallel"},
      {"srun-without-pmi", Launcher::srun, 4, "3.0", "srun --tensor-parallel"},
      {"mpirun-in-allocation", Launcher::mpirun, 4, "4.0", "salloc --tensor-parallel"},
      {"mpirun-alone", Launcher::mpirun, 2, "", nullptr},
      {"hetjob", Launcher::srun, 3, "5.0", nullptr},
      {"array", Launcher::srun, 2, "7.0", "sbatch --tensor-parallel"},
      {"requeued", Launcher::srun, 2, "8.0", "sbatch --tensor-parallel"},
  }));
  CAPTURE(expected.way);
  const auto tasks = recorded(expected.way);
  REQUIRE(static_cast<int>(tasks.size()) == expected.tasks);
  for (std::size_t index = 0; index < tasks.size(); ++index) {
    const auto identity = runtime::identify(tasks[index]);
    REQUIRE(identity.ok());
    CHECK(identity->launcher == expected.launcher);
    CHECK(identity->announced_tasks == expected.tasks);
    CHECK(identity->announced_rank == static_cast<int>(index));
    CHECK(identity->job == expected.job);
    CHECK(runtime::check_world(*identity, expected.tasks).ok());
    // Without a PMI each task sees a world of its own.
    CHECK_FALSE(runtime::check_world(*identity, 1).ok());
    if (expected.origin == nullptr) continue;
    const auto contract = launch::read_contract(tasks[index]);
    REQUIRE(contract.ok());
    CHECK(contract->number("tensor-parallel") == 2);
    CHECK(contract->find("tensor-parallel")->origin == expected.origin);
    CHECK_FALSE(launch::plugin_is_absent_here(tasks[index]));
  }
}

TEST_CASE("a batch script's own process was not started as a rank") {
  const auto tasks = recorded("batch-script");
  REQUIRE(tasks.size() == 1);
  const auto identity = runtime::identify(tasks.front());
  REQUIRE(identity.ok());
  CHECK(identity->launcher == Launcher::none);
  CHECK_FALSE(identity->announced_tasks.has_value());
}

TEST_CASE("a requeued job's tasks know that it was") {
  for (const auto& task : recorded("requeued")) CHECK(task.get("SLURM_RESTART_COUNT") == "1");
}
