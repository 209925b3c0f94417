#include "trireme/train/launch.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/runtime/agree.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace trireme::train {
namespace {

int usable_cores() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof(set), &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

comm::GroupOptions group_options(const config::Config& config) {
  comm::GroupOptions options;
  options.timeout_seconds = config.seconds("comm.timeout");
  const auto& backend = config.text("comm.backend");
  if (backend == "mpi") options.backend = comm::Backend::mpi;
  if (backend == "shared") options.backend = comm::Backend::shared;
  return options;
}

}  // namespace

int compute_threads(const config::Config& config, const base::Environment& environment,
                    const comm::MpiRuntime& mpi) {
  if (!config.automatic("numerics.threads")) return config.count("numerics.threads");
  if (const auto given = environment.get("OMP_NUM_THREADS")) {
    const int threads = std::atoi(given->c_str());
    if (threads > 0) return threads;
  }
  return std::max(1, usable_cores() / std::max(1, mpi.local_size()));
}

base::Result<std::unique_ptr<device::Kernels>> make_kernels(const config::Config& config,
                                                            int threads) {
  const auto& backend = config.text("numerics.backend");
  if (backend == "reference") return device::make_reference_kernels();
  if (backend == "cuda") {
    return base::Failure{base::ExitCode::topology,
                         "numerics.backend = cuda is not in this build (there is no CUDA backend "
                         "in it); use cpu, or auto"};
  }
  return device::make_cpu_kernels(threads);
}

base::ExitCode run_on_mesh(const config::Config& config, const base::Environment& environment,
                           const std::function<base::ExitCode(Session&)>& body) {
  comm::MpiRuntime mpi;
  auto log = base::log::settings();
  log.identity = {mpi.world_rank().value(), mpi.world_size(), mpi.node_name()};
  base::log::configure(log);
  return mpi.run([&] {
    const auto options = group_options(config);
    // Before anything depends on it: do all ranks mean the same, and do they fit the mesh?
    const auto world = mpi.make_world(options);
    runtime::agree_equal(*world, config.hash(), "configuration");
    auto mesh = engine::mesh_from(config, mpi.world_size());
    runtime::agree(*world, mesh.ok() ? base::Status{} : base::Status(mesh.failure()));
    const int threads = compute_threads(config, environment, mpi);
    auto kernels = make_kernels(config, threads);
    runtime::agree(*world, kernels.ok() ? base::Status{} : base::Status(kernels.failure()));
    Session session{runtime::join(mpi, *mesh, options), std::move(kernels).value()};
    base::log::info("runtime", "{} on {} node(s), {} backend, {} thread(s) a rank", mesh->text(),
                    mpi.node_count(), session.kernels->name(), threads);
    return body(session);
  });
}

}  // namespace trireme::train
