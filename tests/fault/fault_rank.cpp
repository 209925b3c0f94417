// SPDX-License-Identifier: Apache-2.0
// usage: mpirun -n RANKS fault_rank FAULT VICTIM BACKEND TIMEOUT_SECONDS RUN_DIRECTORY
// Ranks reduce for ever; at step 20 one of them fails in the way asked for.
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/measure.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/runtime/failure.hpp"

#include <sys/types.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <thread>

namespace {

using namespace trireme;

struct Plan {
  std::string fault;
  int victim;
  comm::Backend backend;
  double timeout_seconds;
  std::string run_directory;
};

/// From here the others have their deadline and 5 s.
void note_time(const Plan& plan) {
  const auto path = std::filesystem::path(plan.run_directory) / "fault.time";
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  base::write_file_durably(path, base::number_text(std::chrono::duration<double>(now).count()));
}

void fail(const Plan& plan, comm::ProcessGroup& world) {
  const bool victim = world.rank() == plan.victim;
  if (victim) note_time(plan);
  if (plan.fault == "agreed") {
    const base::Failure failure{base::ExitCode::checkpoint, "the disk is full"};
    return comm::agree(world, victim ? base::Status(failure) : base::Status{});
  }
  if (!victim) return;
  if (plan.fault == "throw-bytes") {
    throw base::Error(base::ExitCode::checkpoint,
                      "cannot read '/data/b\xfc"
                      "cher'");
  }
  if (plan.fault == "throw" || plan.fault == "throw-held-up")
    throw base::Error(base::ExitCode::checkpoint, "no space left");
  if (plan.fault == "kill") ::raise(SIGKILL);
  if (plan.fault == "stop") ::raise(SIGSTOP);
  if (plan.fault == "late") std::this_thread::sleep_for(std::chrono::hours(1));
}

/// A thread that a file system holds up, such as a save's: the end of the scope waits for it.
class HeldUp {
 public:
  HeldUp() = default;
  HeldUp(const HeldUp&) = delete;
  HeldUp& operator=(const HeldUp&) = delete;
  ~HeldUp() { std::this_thread::sleep_for(std::chrono::hours(1)); }
};

base::ExitCode run(comm::MpiRuntime& mpi, const Plan& plan, const base::Environment& environment) {
  if (plan.fault == "throw-at-start" && mpi.world_rank().value() == plan.victim) {
    note_time(plan);
    throw std::runtime_error("no such luck");
  }
  runtime::JoinOptions options;
  options.timeout_seconds = plan.timeout_seconds;
  options.backend = plan.backend;
  const auto cluster = runtime::join(mpi, options, environment);
  // Among many ranks as little as hosts tell each other, which ranks relay.
  std::vector<std::int32_t> values(mpi.world_size() > 4 ? 64 : 100000, 1);
  const device::Tensor x(values.data(), device::DType::i32,
                         {static_cast<std::int64_t>(values.size())});
  for (int step = 1;; ++step) {
    if (step == 20 && plan.fault == "stop-at-end") return base::ExitCode::done;
    if (step == 20) {
      const bool is_held_up = plan.fault == "throw-held-up" && cluster.rank.value() == plan.victim;
      const auto held = is_held_up ? std::make_unique<HeldUp>() : nullptr;
      mpi.announcing([&] { fail(plan, *cluster.world); });
    }
    cluster.groups.on(layout::Axis::data).all_reduce(x, comm::ReduceOp::max);
  }
}

}  // namespace

int main(int argc, char** argv, char** environment) {
  if (argc != 6) return static_cast<int>(base::ExitCode::usage);
  const Plan plan{argv[1], std::atoi(argv[2]), *comm::backend_named(argv[3]), std::atof(argv[4]),
                  argv[5]};
  const auto captured = base::Environment::capture(environment);
  const bool victim = captured.get("OMPI_COMM_WORLD_RANK") == base::format("{}", plan.victim);
  const auto stop = [&] {
    note_time(plan);
    ::raise(SIGSTOP);
  };
  if (plan.fault == "stop-at-start" && victim) stop();
  std::optional<comm::MpiRuntime> mpi;
  mpi.emplace(comm::StartOptions{.timeout_seconds = plan.timeout_seconds});
  base::log::configure({{mpi->world_rank().value(), mpi->world_size(), mpi->node_name()},
                        base::log::Level::warning,
                        false,
                        ""});
  runtime::report_failures(*mpi, {plan.run_directory, ""});
  const auto code = mpi->run([&] { return run(*mpi, plan, captured); });
  if (plan.fault == "stop-at-end" && victim) stop();
  // MPI ends here.
  mpi.reset();
  return static_cast<int>(code);
}
