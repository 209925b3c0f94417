// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/session.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/nccl_log.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/record/task_record.hpp"
#include "trireme/runtime/failure.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/runtime/library_environment.hpp"
#include "trireme/runtime/open_files.hpp"
#include "trireme/runtime/rank_order.hpp"

#include <algorithm>

namespace trireme::runtime {
namespace {

/// State made before MPI starts that lives as long as MPI.
struct Process {
  Process(const base::Environment& environment, topology::GpuUse gpus)
      : identity(identify(environment)), libraries(library_environment(environment, gpus)) {
    if (identity.ok()) {
      base::success_or_throw(check_process_manager(*identity, environment));
      die_with_slurmstepd(*identity);
    }
    apply(libraries);
    if (gpus == topology::GpuUse::one_each) nccl_log.emplace(environment);
    raise_open_files();
  }

  base::Result<Identity> identity;
  LibraryEnvironment libraries;
  std::optional<comm::NcclLog> nccl_log;
};

/// Gives log lines the rank's identity.
void introduce(comm::MpiRuntime& mpi, const base::Result<Identity>& identity) {
  auto log = base::log::settings();
  log.identity = log_identity(identity, mpi);
  base::log::configure(log);
}

/// Scope in which a command without a run directory logs worlds and backends only with -v.
class QuietStart {
 public:
  explicit QuietStart(bool quiet) {
    const auto threshold = base::log::settings().threshold;
    if (!quiet || threshold != base::log::Level::info) return;
    before_ = threshold;
    set(base::log::Level::warning);
  }
  QuietStart(const QuietStart&) = delete;
  QuietStart& operator=(const QuietStart&) = delete;
  ~QuietStart() { end(); }

  void end() {
    if (before_) set(*before_);
    before_.reset();
  }

 private:
  static void set(base::log::Level threshold) {
    auto log = base::log::settings();
    log.threshold = threshold;
    base::log::configure(log);
  }

  std::optional<base::log::Level> before_;
};

/// Address of NCCL's RAS on this node, from its variables; empty where it is off.
std::string ras_address(const base::Environment& environment) {
  if (environment.get("NCCL_RAS_ENABLE").value_or("1") == "0") return {};
  return environment.get("NCCL_RAS_ADDR").value_or("localhost:28028");
}

/// Reports resources that the launch asked for and this node lacks.
void report_launch(const base::Environment& environment, base::LocalRank local_rank) {
  if (local_rank.value() == 0 && launch::plugin_is_absent_here(environment)) {
    base::log::local::warning(
        "launch",
        "the job was submitted with Trireme's Slurm plugin, but node {} has not loaded it (limits "
        "are not raised, and how tasks end is not recorded); install it there "
        "(docs/install-slurm.md)",
        environment.get("SLURMD_NODENAME").value_or("?"));
  }
}

/// Links the log folder for the node's plugin, which copies its records of this step into the run,
/// where `trireme why` reads them.
void offer_log_folder(const base::Environment& environment, const std::filesystem::path& run) {
  const auto folder = environment.get(launch::directory_variable);
  const auto step = step_number(environment);
  if (!folder || !step || run.empty()) return;
  const auto link = std::filesystem::path(*folder) / record::records_link(*step);
  std::error_code error;
  std::filesystem::remove(link, error);
  std::filesystem::create_symlink(std::filesystem::absolute(run / "log", error), link, error);
  if (error) {
    base::log::local::warning("launch",
                              "cannot make '{}': {} (how tasks of this node end is not copied into "
                              "the run)",
                              link.string(), error.message());
  }
}

/// Logs choices that were made before the log had its rank.
void say(const std::string& order, const LibraryEnvironment& libraries) {
  if (!order.empty()) base::log::info("runtime", "{}", order);
  for (const auto& text : sentences(libraries)) base::log::info("runtime", "{}", text);
  for (const auto& text : libraries.warnings) base::log::warning("runtime", "{}", text);
}

/// Collective over the world. Makes the kernels of this rank, and the groups for their device.
void prepare_kernels(const SessionOptions& options, comm::MpiRuntime& mpi, Session& session,
                     const comm::NcclOptions& nccl) {
  auto& cluster = session.cluster;
  session.kernels = comm::agree(*cluster.world, make_kernels(options.compute, cluster.binding));
  auto& device = session.kernels->device();
  const auto serves = use_device_groups(
      device, cluster, mpi, {.wish = options.device_groups, .nccl = nccl, .rdma = options.rdma});
  if (device.is_host()) {
    base::log::info(
        "runtime", "{} backend, {} a rank", session.kernels->name(),
        base::counted(options.compute.threads.value_or(cluster.binding.threads), "thread"));
    return;
  }
  base::log::local::debug("runtime", "computes on {}", device.name());
  base::log::info("runtime", "{} backend, {}; {}", session.kernels->name(),
                  session.kernels->libraries(), serves.groups);
  const auto& transport = serves.transport;
  if (transport.is_warning) {
    base::log::warning("runtime", "{}", transport.sentence);
  } else if (!transport.sentence.empty()) {
    base::log::info("runtime", "{}", transport.sentence);
  }
}

}  // namespace

base::Result<std::unique_ptr<device::Kernels>> make_kernels(const ComputeOptions& options,
                                                            const Binding& binding) {
  switch (options.backend) {
    case ComputeOptions::Backend::reference:
      return device::make_reference_kernels();
    case ComputeOptions::Backend::cpu:
      return device::make_cpu_kernels(options.threads.value_or(binding.threads), options.tiling,
                                      binding.wait);
    case ComputeOptions::Backend::cuda:
      break;
  }
  const auto gpus = device::gpu_bus_ids();
  if (!gpus.ok()) return gpus.failure();
  const auto gpu = std::find(gpus->begin(), gpus->end(), binding.gpu_bus_id);
  TRIREME_ENSURE(gpu != gpus->end(), "a rank is bound to a GPU that it may use");
  return device::make_cuda_kernels(static_cast<int>(gpu - gpus->begin()), options.attention);
}

base::ExitCode Session::start(const SessionOptions& options, const base::Environment& environment,
                              const std::function<base::ExitCode(Session&)>& body) {
  StartUp start_up;
  QuietStart quiet(options.run_directory.empty());
  auto join = options.join;
  join.gpus = options.compute.gpus();
  const Process process(environment, join.gpus);
  // Only the first rank's text is agreed on.
  if (!process.identity.ok() || process.identity->announced_rank.value_or(0) != 0) {
    join.described = nullptr;
  }
  RankOrdering ordering(join, environment);
  start_up.reached("program");
  comm::MpiRuntime mpi(
      {.numbering = ordering.numbering(), .timeout_seconds = options.start_timeout_seconds});
  start_up.reached("MPI_Init", "meeting", mpi.start_seconds() - mpi.init_seconds());
  introduce(mpi, process.identity);
  // The run may be another start's: no file is written there before it is open.
  if (options.run_directory.empty()) {
    report_failures_of_command(mpi);
  } else {
    report_failures(mpi, {});
  }
  return mpi.run([&] {
    // Not before MPI: a missing GPU is the failure of one node, which ranks must agree on.
    if (join.gpus == topology::GpuUse::one_each) join.visible_gpus = device::gpu_bus_ids();
    Session session{nullptr, runtime::join(mpi, join, environment, std::move(start_up))};
    session.run_is_open = [&] {
      const auto& run = options.run_directory;
      report_failures(mpi, {run, record::rank_log(run, mpi.world_rank()).string()});
      if (mpi.local_rank().value() == 0) offer_log_folder(environment, run);
    };
    session.cluster.cache_folder = cache_folder(environment);
    report_launch(environment, mpi.local_rank());
    say(comm::broadcast_bytes(*session.cluster.world, ordering.sentence(),
                              mpi.first_process().value()),
        process.libraries);
    comm::agree_equal(*session.cluster.world, options.configuration, "the configuration",
                      "start all ranks with the same files, environment and command line");
    prepare_kernels(options, mpi, session,
                    {.timeout_seconds = join.timeout_seconds,
                     .ras_address = ras_address(environment),
                     .log = process.nccl_log ? &*process.nccl_log : nullptr,
                     .registration = options.registration});
    session.cluster.start_up.reached("backend");
    quiet.end();
    return body(session);
  });
}

base::ExitCode run_on_ranks(
    const base::Environment& environment, topology::GpuUse gpus,
    const std::function<base::ExitCode(comm::MpiRuntime&, const comm::NcclLog*)>& body) {
  const Process process(environment, gpus);
  const auto identity = base::value_or_throw(process.identity);
  comm::MpiRuntime mpi;
  introduce(mpi, process.identity);
  report_failures(mpi, {});
  return mpi.run([&] {
    base::success_or_throw(check_world(identity, mpi.world_size()));
    return body(mpi, process.nccl_log ? &*process.nccl_log : nullptr);
  });
}

std::filesystem::path cache_folder(const base::Environment& environment) {
  if (const auto cache = environment.get("XDG_CACHE_HOME"); cache && cache->starts_with('/')) {
    return std::filesystem::path(*cache) / "trireme";
  }
  const auto home = environment.get("HOME");
  if (!home || home->empty()) return {};
  return std::filesystem::path(*home) / ".cache/trireme";
}

}  // namespace trireme::runtime
