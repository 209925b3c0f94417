// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/identity.hpp"

#include "runtime/bind.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using base::Environment;
using runtime::Launcher;

namespace {

Environment with(const char* name, const char* value) {
  return Environment(std::map<std::string, std::string, std::less<>>{{name, value}});
}

}  // namespace

TEST_CASE("each launcher is known by what only it sets") {
  const auto identity = [](std::map<std::string, std::string, std::less<>> variables) {
    return runtime::identify(Environment(std::move(variables))).value();
  };
  CHECK(identity({}).launcher == Launcher::none);
  const auto mpirun = identity({{"OMPI_COMM_WORLD_SIZE", "4"}, {"OMPI_COMM_WORLD_RANK", "3"}});
  CHECK(mpirun.launcher == Launcher::mpirun);
  CHECK(mpirun.announced_tasks == 4);
  CHECK(mpirun.announced_rank == 3);
  const auto srun = identity({{"SLURM_JOB_ID", "12"},
                              {"SLURM_STEP_ID", "0"},
                              {"SLURM_STEP_NUM_TASKS", "8"},
                              {"SLURM_PROCID", "7"}});
  CHECK(srun.launcher == Launcher::srun);
  CHECK(srun.announced_tasks == 8);
  CHECK(srun.job == "12.0");
  const auto hydra = identity({{"PMI_SIZE", "2"}, {"PMI_RANK", "1"}});
  CHECK(hydra.launcher == Launcher::process_manager);
  CHECK(hydra.announced_tasks == 2);
  CHECK_FALSE(identity({{"PMIX_RANK", "1"}}).announced_tasks.has_value());
}

TEST_CASE("mpirun inside a step of Slurm is mpirun") {
  const auto identity = runtime::identify(Environment({{"OMPI_COMM_WORLD_SIZE", "16"},
                                                       {"OMPI_COMM_WORLD_RANK", "0"},
                                                       {"SLURM_JOB_ID", "12"},
                                                       {"SLURM_STEP_NUM_TASKS", "2"},
                                                       {"SLURM_PROCID", "0"}}));
  CHECK(identity->announced_tasks == 16);
}

TEST_CASE("a plain process in a batch script is no lost task") {
  const auto identity = runtime::identify(
      Environment({{"SLURM_JOB_ID", "12"}, {"SLURM_NTASKS", "8"}, {"SLURM_PROCID", "0"}}));
  CHECK(identity->launcher == Launcher::none);
  CHECK(runtime::check_world(*identity, 1).ok());
}

TEST_CASE("tasks of srun without a process manager are refused before MPI starts") {
  using Variables = std::map<std::string, std::string, std::less<>>;
  const Variables step{
      {"SLURM_JOB_ID", "12"}, {"SLURM_STEP_ID", "0"}, {"SLURM_STEP_NUM_TASKS", "4"}};
  const auto check = [&](const Variables& more) {
    auto variables = step;
    for (const auto& [name, value] : more) variables[name] = value;
    const Environment environment(std::move(variables));
    return runtime::check_process_manager(*runtime::identify(environment), environment);
  };
  const auto refused = check({});
  REQUIRE_FALSE(refused.ok());
  CHECK(refused.failure().code == base::ExitCode::launch);
  CHECK(refused.failure().text.find("srun --mpi=pmix") != std::string::npos);
  CHECK(check({{"PMIX_RANK", "3"}}).ok());
  CHECK(check({{"PMI_FD", "9"}}).ok());
  // Open MPI refuses a single task of srun as well.
  CHECK_FALSE(check({{"SLURM_STEP_NUM_TASKS", "1"}}).ok());
  // mpirun brings a process manager of its own.
  CHECK(check({{"OMPI_COMM_WORLD_SIZE", "4"}}).ok());
}

TEST_CASE("variables of a launcher that is no ancestor are inherited") {
  runtime::Identity identity;
  CHECK_FALSE(runtime::is_inherited(identity));
  CHECK_FALSE(runtime::may_be_inherited(identity));
  identity.launcher = Launcher::srun;
  CHECK(runtime::is_inherited(identity));
  CHECK(runtime::may_be_inherited(identity));
  // Programs of process managers are many, and not all are known.
  identity.launcher = Launcher::process_manager;
  CHECK_FALSE(runtime::is_inherited(identity));
  CHECK(runtime::may_be_inherited(identity));
}

TEST_CASE("a silent singleton is refused with the way to start") {
  runtime::Identity identity;
  identity.launcher = Launcher::srun;
  identity.announced_tasks = 8;
  const auto status = runtime::check_world(identity, 1);
  REQUIRE_FALSE(status.ok());
  CHECK(status.failure().code == base::ExitCode::launch);
  CHECK(status.failure().text.find("--mpi=pmix") != std::string::npos);
  CHECK(status.failure().text.find("8 tasks") != std::string::npos);
  CHECK(runtime::check_world(identity, 8).ok());
  CHECK_FALSE(runtime::check_world(identity, 4).ok());
}

TEST_CASE("numbers that a launcher cannot have meant are refused") {
  for (const char* text : {"", "four", "4x", "-1", "99999999999"}) {
    CAPTURE(text);
    const auto identity = runtime::identify(with("OMPI_COMM_WORLD_SIZE", text));
    REQUIRE_FALSE(identity.ok());
    CHECK(identity.failure().code == base::ExitCode::launch);
    CHECK(identity.failure().text.find("OMPI_COMM_WORLD_SIZE") != std::string::npos);
  }
}

TEST_CASE("threads follow the binding unless OMP_NUM_THREADS says otherwise") {
  const auto threads = [](const char* text) {
    return runtime::thread_count(with("OMP_NUM_THREADS", text), 6);
  };
  CHECK(*runtime::thread_count(Environment(), 6) == 6);
  CHECK(*threads("2") == 2);
  CHECK(*threads("4,2") == 4);
  CHECK(*threads("") == 6);
  CHECK(*threads(" ") == 6);
  CHECK(*threads(" 2") == 2);
  CHECK(*threads("3\t") == 3);
  CHECK(*threads(" 4 , 2") == 4);
  for (const char* text : {"0", "-2", "many", "2 3", ",2", "99999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(threads(text).ok());
  }
}

TEST_CASE("compute threads wait as the user's OpenMP variables say, else briefly") {
  using std::chrono::microseconds;
  const auto wait = [](const char* name, const char* text) {
    return runtime::thread_wait(with(name, text));
  };
  CHECK(*runtime::thread_wait(Environment()) == device::ThreadWait{});
  CHECK(device::ThreadWait{}.spin > microseconds(0));
  CHECK(device::ThreadWait{}.spin < microseconds(1000));
  CHECK(*wait("OMP_WAIT_POLICY", "passive") == device::never_spins);
  CHECK(*wait("OMP_WAIT_POLICY", "ACTIVE") == device::always_spins);
  CHECK(*wait("OMP_WAIT_POLICY", " passive\t") == device::never_spins);
  CHECK(*wait("OMP_WAIT_POLICY", " ") == device::ThreadWait{});
  CHECK(*wait("GOMP_SPINCOUNT", " 2k ") == device::spins_for(microseconds(20)));
  CHECK(*wait("GOMP_SPINCOUNT", "0") == device::never_spins);
  CHECK(*wait("GOMP_SPINCOUNT", "30000") == device::spins_for(microseconds(300)));
  CHECK(*wait("GOMP_SPINCOUNT", "2k") == device::spins_for(microseconds(20)));
  CHECK(*wait("GOMP_SPINCOUNT", "3M") == device::spins_for(microseconds(30'000)));
  CHECK(*wait("GOMP_SPINCOUNT", "infinite") == device::always_spins);
  CHECK(wait("GOMP_SPINCOUNT", "18446744073709551615")->spin > std::chrono::minutes(1));
  for (const char* text : {"often", "-1", "3kk", "2 k", "99999999999999999999"}) {
    CAPTURE(text);
    CHECK_FALSE(wait("GOMP_SPINCOUNT", text).ok());
    CHECK_FALSE(wait("OMP_WAIT_POLICY", text).ok());
  }
}
