// SPDX-License-Identifier: Apache-2.0
// trireme preflight
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/base/text.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/runtime/session.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/preflight/machine_out.hpp"
#include "apps/preflight/measure_machine.hpp"

#include <algorithm>
#include <memory>
#include <thread>

namespace trireme::apps {
namespace {

using base::format;
using layout::Axis;

struct PreflightOptions {
  std::string out;
  std::string from;
  std::string path = ".";
  std::string backend = "cpu";

  bool on_gpus() const { return backend == "cuda"; }
};

base::Status check_path(const std::filesystem::path& folder) {
  std::error_code problem;
  if (std::filesystem::is_directory(folder, problem)) return {};
  return base::usage_failure(
      format("--path '{}' is not a folder (a file is written there and removed); name one",
             base::printable(folder.string())));
}

/// Refusal of a file that is no machine's, or of one with other processors than those that are
/// measured: numbers of both would stand beside each other.
base::Status check_from(const PreflightOptions& options) {
  if (options.from.empty()) return {};
  const auto machine = predict::read_machine(options.from);
  if (!machine) return machine.failure();
  if (options.on_gpus() != machine->node.computes_on_cores()) return {};
  return base::usage_failure(
      format("--backend {} does not go with --from '{}', which has node.gpus = {} (what is not "
             "measured would be that of {}); name the file of a machine that computes on {}",
             options.backend, base::printable(options.from), machine->node.gpus,
             options.on_gpus() ? "cores" : "GPUs", options.on_gpus() ? "GPUs" : "cores"));
}

/// Refusal of ranks of which some nodes have more than others: their rates are no node's.
base::Status check_nodes(const comm::MpiRuntime& mpi) {
  if (mpi.local_size() * mpi.node_count() == mpi.world_size()) return {};
  return base::Failure{
      base::ExitCode::launch,
      format("node {} has {} of {} ranks on {} nodes (a machine file describes equal ones); start "
             "as many on each",
             mpi.node_name(), mpi.local_size(), mpi.world_size(), mpi.node_count())};
}

runtime::Cluster join(const PreflightOptions& options, comm::MpiRuntime& mpi,
                      const base::Environment& environment) {
  runtime::JoinOptions join;
  // Tensor-parallel groups are the nodes, data-parallel ones lie across them.
  join.arrangement.tensor = mpi.local_size();
  if (options.on_gpus()) {
    join.gpus = topology::GpuUse::one_each;
    join.visible_gpus = device::gpu_bus_ids();
  }
  return runtime::join(mpi, join, environment);
}

predict::Machine machine_before(const PreflightOptions& options, const runtime::Cluster& cluster) {
  if (!options.from.empty()) return base::value_or_throw(predict::read_machine(options.from));
  const int of_ranks = cluster.binding.threads * cluster.mpi->local_size();
  const int there = static_cast<int>(std::max(1U, std::thread::hardware_concurrency()));
  auto machine = cores_machine(std::min(of_ranks, there));
  machine.sources["node.cores"] =
      format("threads that compute on the node's {} ranks", cluster.mpi->local_size());
  return machine;
}

base::ExitCode run_preflight(const PreflightOptions& options, Context& context) {
  const auto backend = options.on_gpus() ? runtime::ComputeOptions::Backend::cuda
                                         : runtime::ComputeOptions::Backend::cpu;
  const runtime::ComputeOptions compute{.backend = backend};
  return runtime::run_on_ranks(
      context.environment, compute.gpus(), [&](comm::MpiRuntime& mpi, const comm::NcclLog* log) {
        const auto meeting = mpi.make_world();
        comm::agree(*meeting, check_nodes(mpi));
        const bool is_first = mpi.world_rank().value() == 0;
        comm::agree(*meeting, is_first ? check_machine_out(options.out) : base::Status{});
        comm::agree(*meeting, check_path(options.path));
        auto cluster = join(options, mpi, context.environment);
        auto machine =
            comm::agree_after(*meeting, [&] { return machine_before(options, cluster); });
        const auto kernels = comm::agree(*meeting, runtime::make_kernels(compute, cluster.binding));
        runtime::use_device_groups(kernels->device(), cluster, mpi, {.nccl = {.log = log}});
        measure_products(cluster, *kernels, machine);
        measure_passes(cluster, *kernels, machine);
        measure_links(cluster, *kernels, machine);
        measure_disk(cluster, options.path, machine);
        comm::agree_after(*meeting, [&] {
          if (!is_first) return;
          write_machine(machine, "A machine that trireme preflight has measured.", options.out);
          context.out.write(format("measured: trireme plan CONFIG --machine {}\n",
                                   base::shell_word(options.out)));
        });
        return base::ExitCode::done;
      });
}

Action prepare_preflight(CLI::App& app) {
  auto options = std::make_shared<PreflightOptions>();
  app.add_option("--machine-out", options->out, "Machine file to write; must not be there yet")
      ->type_name("FILE")
      ->required();
  app.add_option("--from", options->from,
                 "Machine file with what is not measured: needed for GPUs, else assumed")
      ->type_name("FILE");
  app.add_option("--path", options->path, "Folder on the disk of runs, which is measured, too")
      ->type_name("DIR")
      ->default_str(".");
  app.add_option("--backend", options->backend, "What computes: cpu or cuda")
      ->type_name("BACKEND")
      ->check(one_of({"cpu", "cuda"}));
  return [options](Context& context) {
    if (options->on_gpus() && options->from.empty()) {
      throw base::Error(base::usage_failure(
          "--backend cuda needs --from (memory and processors of a GPU are not measured); name "
          "the file of the machine nearest to this one in configs/machines"));
    }
    // Mistakes that each rank sees end before MPI starts.
    base::success_or_throw(check_from(*options));
    return run_preflight(*options, context);
  };
}

}  // namespace

Command preflight_command() {
  return {.name = "preflight",
          .summary = "Measures this machine, for predictions of trireme plan",
          .group = "Explanations",
          .details =
              "Writes a machine file (docs/plan.md): rates of products by shape, of memory and of "
              "attention, the time of a launch, messages by size in the node and, where ranks are "
              "on two, between nodes, and the rate at which files are written, each with its "
              "source. Start it on idle nodes with the ranks that a run would have there: mpirun "
              "-n 2 trireme preflight --machine-out here.conf. It takes half a minute at most on "
              "local disks. Exit codes: 2 the file is there or cannot be written, 3 nodes have "
              "different numbers of ranks, 4 no GPU.",
          .prepare = prepare_preflight};
}

}  // namespace trireme::apps
