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

/// Transport of device tensors between ranks.
enum class DeviceGroups {
  automatic,  ///< NCCL where all ranks can, else through the host
  staged,
  nccl
};

/// NCCL capabilities of a rank.
struct NcclOffer {
  /// Equal where ranks are on one node.
  int node = 0;
  std::string gpu;
  /// Version as NCCL reports it; 0 where there is none, for the reason that follows.
  int version = 0;
  std::string reason;
};

struct DeviceGroupsChoice {
  DeviceGroups groups = DeviceGroups::staged;
  /// Choice and its reason, for the log.
  std::string sentence;
};

/// Choice for ranks with these capabilities, by rank. Fails (ExitCode::topology) where NCCL is
/// required but cannot be used.
base::Result<DeviceGroupsChoice> choose_device_groups(DeviceGroups wish,
                                                      std::span<const NcclOffer> offers);

struct DeviceGroupsOptions {
  DeviceGroups wish = DeviceGroups::automatic;
  /// Called where tensors lie on a device.
  std::function<base::Result<comm::NcclLibrary>()> library = comm::load_nccl;
  /// Library and log of NCCL; without a log the transport of data is not known.
  comm::NcclOptions nccl;
  RdmaRule rdma = RdmaRule::automatic;
};

/// Report for the log: chosen groups and why, and NCCL's transports; empty on the host's memory.
struct DeviceGroupsReport {
  std::string groups;
  TransportVerdict transport;
};

/// Collective over the world. Host-blocking: yes. Makes the groups of the mesh's axes
/// take tensors of `device`, which outlives them; world stays on the host. Without
/// effect for the host's own memory. Throws AgreedError (topology) where NCCL is required but
/// cannot be used, and where the transport between nodes breaks the rule; waits of NCCL's groups
/// have the deadline of the options.
DeviceGroupsReport use_device_groups(device::Device& device, Cluster& cluster,
                                     comm::MpiRuntime& mpi, const DeviceGroupsOptions& options);

}  // namespace trireme::runtime
