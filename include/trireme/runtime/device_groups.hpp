// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/comm/nccl.hpp"
#include "trireme/device/device.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/runtime/transport.hpp"

#include <functional>
#include <span>
#include <string>

namespace trireme::runtime {

/// What moves tensors of devices between ranks.
enum class DeviceGroups {
  automatic,  ///< NCCL where all ranks can, else through the host
  staged,
  nccl
};

/// What a rank has for NCCL.
struct NcclOffer {
  /// Equal where ranks are on one node.
  int node = 0;
  std::string gpu;
  /// As NCCL tells it; 0 where there is none, for the reason that follows.
  int version = 0;
  std::string reason;
};

struct DeviceGroupsChoice {
  DeviceGroups groups = DeviceGroups::staged;
  /// For the log: what serves, and why.
  std::string sentence;
};

/// What serves ranks that have this, by rank. Fails (ExitCode::topology) where NCCL is wanted and
/// cannot serve.
base::Result<DeviceGroupsChoice> choose_device_groups(DeviceGroups wish,
                                                      std::span<const NcclOffer> offers);

struct DeviceGroupsOptions {
  DeviceGroups wish = DeviceGroups::automatic;
  /// Called where tensors lie on a device.
  std::function<base::Result<comm::NcclLibrary>()> library = comm::load_nccl;
  /// Without a log it is not known what carries data.
  comm::NcclOptions nccl;
  RdmaRule rdma = RdmaRule::automatic;
};

/// For the log: what serves and why, and of NCCL what carries its data; empty on the host's memory.
struct DeviceGroupsReport {
  std::string groups;
  TransportVerdict transport;
};

/// Collective over the world. Host-blocking: yes. From now on the groups of layers (tp, pp, dp,
/// embedding) take tensors of `device`, which outlives them; world stays the host's. On
/// the host's own memory nothing changes. Throws AgreedError (topology) where NCCL is wanted and
/// cannot serve, and where what carries data between nodes breaks the rule; waits of NCCL's groups
/// have the deadline of the options.
DeviceGroupsReport use_device_groups(device::Device& device, Cluster& cluster, comm::MpiRuntime& mpi,
                              const DeviceGroupsOptions& options);

}  // namespace trireme::runtime
