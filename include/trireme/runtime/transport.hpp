// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/nccl_log.hpp"
#include "trireme/comm/process_group.hpp"
#include "trireme/schema/choices.hpp"

#include <span>
#include <string>
#include <vector>

/// Transport of data between nodes, derived from the connections that NCCL has opened and not from
/// its settings.
namespace trireme::runtime {

using schema::RdmaRule;

/// Transport of a rank after NCCL has moved data between all ranks.
struct TransportReport {
  /// Equal where ranks are on one node.
  int node = 0;
  /// NICs of its node with RDMA whose port is up.
  std::vector<std::string> rdma_nics;
  comm::NcclTransport transport;
  /// Reason why NCCL's log is not known; empty where it is.
  std::string unknown;
};

struct TransportVerdict {
  /// Line for the log: network and plugin, devices, GPUDirect RDMA or not, and the transport inside
  /// nodes.
  std::string sentence;
  bool is_warning = false;
};

/// Fails (ExitCode::topology) where the rule forbids what the ranks, by rank, report.
base::Result<TransportVerdict> judge_transport(RdmaRule rule,
                                               std::span<const TransportReport> reports);

/// Collective over the world. Host-blocking: yes. The verdict on all ranks' reports; all throw
/// AgreedError where it fails.
TransportVerdict prove_transport(comm::ProcessGroup& world, RdmaRule rule,
                                 const TransportReport& mine);

/// Fails (ExitCode::topology) where groups that are not NCCL's run between nodes although RDMA must
/// be shown, which can be done of NCCL alone. `groups`: "MPI's".
base::Status check_other_groups(RdmaRule rule, int nodes, std::string_view groups);

}  // namespace trireme::runtime
