#include "trireme/train/launch.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/device/compute_threads.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/task_record.hpp"
#include "trireme/runtime/device_groups.hpp"
#include "trireme/runtime/device_queues.hpp"
#include "trireme/runtime/failure.hpp"
#include "trireme/runtime/identity.hpp"
#include "trireme/runtime/network_exports.hpp"
#include "trireme/runtime/open_files.hpp"
#include "trireme/runtime/rank_order.hpp"
#include "trireme/train/trainer.hpp"

#include "choose_products.hpp"

#include <algorithm>
#include <optional>

namespace trireme::train {
namespace {

comm::Backend backend_on_hosts(config::CommBackend backend) {
  if (backend == config::CommBackend::mpi) return comm::Backend::mpi;
  if (backend == config::CommBackend::shared) return comm::Backend::shared;
  return comm::Backend::automatic;
}

runtime::OrderRule order_rule(config::RankOrder order) {
  if (order == config::RankOrder::topology) return runtime::OrderRule::topology;
  if (order == config::RankOrder::slurm) return runtime::OrderRule::launcher;
  return runtime::OrderRule::automatic;
}

base::Result<runtime::JoinOptions> join_options(const config::Config& config) {
  const auto& keys = config.options();
  const auto backend = keys.comm.backend;
  const bool for_gpus =
      backend == config::CommBackend::nccl || backend == config::CommBackend::staged;
  if (for_gpus && !keys.numerics.on_gpus()) {
    return base::usage_failure(
        base::format("comm.backend = {} does not go with numerics.backend = auto, which computes "
                     "on CPUs (it moves GPU memory); use comm.backend = auto or "
                     "numerics.backend = cuda",
                     config.shown("comm.backend")));
  }
  runtime::JoinOptions options;
  options.arrangement = config::arrangement(keys);
  options.timeout_seconds = keys.comm.timeout;
  options.backend = backend_on_hosts(backend);
  options.order = order_rule(keys.run.order);
  if (keys.numerics.on_gpus()) {
    options.gpus = topology::GpuUse::one_each;
    const auto model = model_from(config);
    const auto status = model.ok() ? engine::check_attention(keys, *model) : base::Status{};
    if (!status.ok()) return status.failure();
  }
  if (keys.run.binding == config::BindingRule::none) options.binding = runtime::BindingRule::none;
  return options;
}

runtime::DeviceGroups device_groups(config::CommBackend backend) {
  if (backend == config::CommBackend::nccl) return runtime::DeviceGroups::nccl;
  if (backend == config::CommBackend::staged) return runtime::DeviceGroups::staged;
  return runtime::DeviceGroups::automatic;
}

runtime::RdmaRule rdma_rule(config::RequireRdma rule) {
  if (rule == config::RequireRdma::yes) return runtime::RdmaRule::required;
  if (rule == config::RequireRdma::no) return runtime::RdmaRule::optional;
  return runtime::RdmaRule::automatic;
}

comm::NcclRegistration registration(config::RegisterBuffers wish) {
  if (wish == config::RegisterBuffers::none) return comm::NcclRegistration::none;
  if (wish == config::RegisterBuffers::windows) return comm::NcclRegistration::windows;
  return comm::NcclRegistration::buffers;
}

/// Where NCCL's own watch answers on this node, as its variables say; empty where it is off.
std::string ras_address(const base::Environment& environment) {
  if (environment.get("NCCL_RAS_ENABLE").value_or("1") == "0") return {};
  return environment.get("NCCL_RAS_ADDR").value_or("localhost:28028");
}

/// The backend of this rank, and groups of what it computes with.
void prepare_kernels(const config::Config& config, comm::MpiRuntime& mpi, Session& session,
                     const comm::NcclOptions& nccl) {
  const auto& keys = config.options();
  auto& cluster = session.cluster;
  session.kernels = comm::agree(*cluster.world, make_kernels(config, cluster.binding));
  auto& device = session.kernels->device();
  const auto serves = runtime::compute_on(device, cluster, mpi,
                                          {.wish = device_groups(keys.comm.backend),
                                           .nccl = nccl,
                                           .rdma = rdma_rule(keys.comm.require_rdma)});
  if (device.is_host()) {
    base::log::info(
        "runtime", "{} backend, {} a rank", session.kernels->name(),
        base::counted(keys.numerics.threads.value_or(cluster.binding.threads), "thread"));
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

/// What this node lacks of what the launch asked for.
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

/// Lets the node's plugin copy its records of this step into the run, where `trireme why` looks.
void offer_log_folder(const base::Environment& environment, const std::filesystem::path& run) {
  const auto folder = environment.get(launch::directory_variable);
  const auto step = runtime::step_number(environment);
  if (!folder || !step || run.empty()) return;
  const auto link = std::filesystem::path(*folder) / launch::records_link(*step);
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

/// What was chosen before anybody could be told.
void say(const std::vector<std::string>& sentences, const runtime::DeviceQueues& queues) {
  for (const auto& text : sentences) {
    if (!text.empty()) base::log::info("runtime", "{}", text);
  }
  if (queues.sentence.empty()) return;
  if (queues.is_warning) {
    base::log::warning("runtime", "{}", queues.sentence);
  } else {
    base::log::info("runtime", "{}", queues.sentence);
  }
}

}  // namespace

base::Result<std::unique_ptr<device::Kernels>> make_kernels(const config::Config& config,
                                                            const runtime::Binding& binding) {
  const auto& numerics = config.options().numerics;
  if (numerics.backend == config::KernelBackend::reference) {
    return device::make_reference_kernels();
  }
  if (numerics.on_gpus()) {
    const auto cards = device::card_bus_ids();
    if (!cards.ok()) return cards.failure();
    const auto card = std::find(cards->begin(), cards->end(), binding.gpu_bus_id);
    const auto attention = engine::card_attention(numerics);
    TRIREME_ENSURE(attention.has_value(), "this backend has a choice of attention");
    return device::make_cuda_kernels(static_cast<int>(card - cards->begin()), *attention);
  }
  return device::make_cpu_kernels(
      numerics.threads.value_or(binding.threads),
      numerics.deterministic ? device::Tiling::by_shape : device::Tiling::for_threads,
      binding.wait);
}

namespace {

/// While a command without a run of its own starts, worlds and backends are talk for -v alone.
class QuietStart {
 public:
  explicit QuietStart(const Failures& failures) {
    const auto threshold = base::log::settings().threshold;
    if (!failures.run_directory.empty() || threshold != base::log::Level::info) return;
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

}  // namespace

base::ExitCode run_on_mesh(const config::Config& config, const base::Environment& environment,
                           const Failures& failures,
                           const std::function<base::ExitCode(Session&)>& body) {
  runtime::StartUp start_up;
  QuietStart quiet(failures);
  auto join = base::value_or_throw(join_options(config));
  const auto identity = runtime::identify(environment);
  if (identity.ok()) runtime::die_with_slurmstepd(*identity);
  // The first rank's text is the one that all agree on.
  if (identity.ok() && identity->announced_rank.value_or(0) == 0) {
    join.described = [&config] {
      const auto model = model_from(config);
      return model.ok() ? engine::arrangement_of(config, *model)
                        : config::arrangement(config.options());
    };
  }
  const auto exported = runtime::export_network(environment, join.gpus);
  const auto queues = join.gpus == topology::GpuUse::one_each
                          ? runtime::export_device_queues(environment)
                          : runtime::DeviceQueues{};
  const auto nccl_log = join.gpus == topology::GpuUse::one_each
                            ? std::make_unique<comm::NcclLog>(environment)
                            : nullptr;
  runtime::raise_open_files();
  runtime::RankOrdering ordering(join, environment);
  start_up.reached("program");
  comm::MpiRuntime mpi(
      {.numbering = ordering.numbering(), .timeout_seconds = config.options().comm.start_timeout});
  start_up.reached("MPI_Init", "meeting", mpi.start_seconds() - mpi.init_seconds());
  auto log = base::log::settings();
  log.identity = runtime::log_identity(identity, mpi);
  base::log::configure(log);
  // The run may be another start's: nothing is written there before it is open.
  if (!failures.run_directory.empty()) runtime::report_failures(mpi, {});
  return mpi.run([&] {
    // Not before MPI: a node that lacks a card is not every rank's mistake.
    if (join.gpus == topology::GpuUse::one_each) join.visible_gpus = device::card_bus_ids();
    Session session{nullptr, runtime::join(mpi, join, environment, std::move(start_up))};
    session.run_is_open = [&] {
      const auto& run = failures.run_directory;
      runtime::report_failures(mpi, {run, rank_log(run, mpi.world_rank()).string()});
      if (mpi.local_rank().value() == 0) offer_log_folder(environment, run);
    };
    session.cluster.cache_folder = cache_folder(environment);
    report_launch(environment, mpi.local_rank());
    say({ordering.sentence(), exported}, queues);
    auto& world = *session.cluster.world;
    comm::agree_equal(world, config.hash(), "the configuration",
                      "start all ranks with the same files, environment and command line");
    prepare_kernels(config, mpi, session,
                    {.timeout_seconds = config.options().comm.timeout,
                     .ras_address = ras_address(environment),
                     .log = nccl_log.get(),
                     .registration = registration(config.options().comm.register_buffers)});
    session.cluster.start_up.reached("backend");
    quiet.end();
    return body(session);
  });
}

std::filesystem::path rank_log(const std::filesystem::path& run, base::Rank rank) {
  return run / "log" / base::format("r{:04}.txt", rank.value());
}

}  // namespace trireme::train
