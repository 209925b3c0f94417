// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/nccl_log.hpp"
#include "trireme/comm/process_group.hpp"

#include <span>
#include <string>
#include <vector>

/// What carries data between nodes, shown by what NCCL has opened and not by what was asked of it.
namespace trireme::runtime {

/// comm.require_rdma.
enum class RdmaRule {
  automatic,  ///< no TCP where a node has NICs with RDMA
  required,   ///< nothing but what is shown to be RDMA
  optional
};

/// What a rank knows once NCCL has moved something between all ranks.
struct TransportReport {
  /// Equal where ranks are on one node.
  int node = 0;
  /// Of its node, with their port up.
  std::vector<std::string> rdma_nics;
  comm::NcclTransport transport;
  /// Why NCCL's log is not known; empty where it is.
  std::string unknown;
};

struct TransportVerdict {
  /// For the log, one line: network and plugin, devices, GPUDirect RDMA or not, and what serves
  /// inside nodes.
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
