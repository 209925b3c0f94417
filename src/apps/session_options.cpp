// SPDX-License-Identifier: Apache-2.0
#include "apps/session_options.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/train/trainer.hpp"

namespace trireme::apps {
namespace {

comm::Backend host_groups(config::CommBackend backend) {
  if (backend == config::CommBackend::mpi) return comm::Backend::mpi;
  if (backend == config::CommBackend::shared) return comm::Backend::shared;
  return comm::Backend::automatic;
}

runtime::DeviceGroups device_groups(config::CommBackend backend) {
  if (backend == config::CommBackend::nccl) return runtime::DeviceGroups::nccl;
  if (backend == config::CommBackend::staged) return runtime::DeviceGroups::staged;
  return runtime::DeviceGroups::automatic;
}

comm::NcclRegistration registration(config::RegisterBuffers wish) {
  if (wish == config::RegisterBuffers::none) return comm::NcclRegistration::none;
  if (wish == config::RegisterBuffers::windows) return comm::NcclRegistration::windows;
  return comm::NcclRegistration::buffers;
}

runtime::ComputeOptions compute_options(const config::NumericsOptions& numerics) {
  using Backend = runtime::ComputeOptions::Backend;
  runtime::ComputeOptions compute;
  if (numerics.backend == config::KernelBackend::reference) compute.backend = Backend::reference;
  if (numerics.on_gpus()) compute.backend = Backend::cuda;
  compute.threads = numerics.threads;
  if (numerics.deterministic) compute.tiling = device::Tiling::by_shape;
  compute.attention = engine::gpu_attention(numerics).value_or(device::AttentionChoice{});
  return compute;
}

runtime::JoinOptions join_options(const config::Config& config) {
  const auto& keys = config.options();
  runtime::JoinOptions join;
  join.arrangement = config::arrangement(config.options());
  join.described = [&config] {
    const auto model = train::model_from(config);
    return model.ok() ? engine::arrangement_of(config, *model)
                      : config::arrangement(config.options());
  };
  join.timeout_seconds = keys.comm.timeout;
  join.backend = host_groups(keys.comm.backend);
  join.order = keys.run.order;
  join.binding = keys.run.binding;
  return join;
}

/// Checks that one process can make alone, before MPI has started.
base::Status check(const config::Config& config) {
  const auto& keys = config.options();
  const auto groups = device_groups(keys.comm.backend);
  if (groups != runtime::DeviceGroups::automatic && !keys.numerics.on_gpus()) {
    return base::usage_failure(
        base::format("comm.backend = {} does not go with numerics.backend = auto, which computes "
                     "on CPUs (it moves GPU memory); use comm.backend = auto or "
                     "numerics.backend = cuda",
                     config.shown("comm.backend")));
  }
  if (!keys.numerics.on_gpus()) return {};
  const auto model = train::model_from(config);
  return model.ok() ? engine::check_attention(keys, *model) : base::Status{};
}

}  // namespace

runtime::SessionOptions session_options(const config::Config& config) {
  base::success_or_throw(check(config));
  const auto& keys = config.options();
  runtime::SessionOptions options;
  options.join = join_options(config);
  options.compute = compute_options(keys.numerics);
  options.device_groups = device_groups(keys.comm.backend);
  options.rdma = keys.comm.require_rdma;
  options.registration = registration(keys.comm.register_buffers);
  options.start_timeout_seconds = keys.comm.start_timeout;
  options.configuration = config.hash();
  return options;
}

}  // namespace trireme::apps
