// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/resource_request.hpp"

#include <string>
#include <vector>

namespace trireme::launch {

/// Shortest lead of run.signal_lead = auto: a run stops at least so long before its time limit.
inline constexpr int shortest_automatic_lead_seconds = 60;

/// Errors for which the tasks, nodes and GPUs of a request cannot fulfil the contract, each "what =
/// value problem (why it matters); what to do". Unknown numbers are not checked: the ranks check
/// the mesh again when they start.
std::vector<std::string> validate(const Contract& contract, const ResourceRequest& request);

/// Values in force for a step that does not give its own.
struct StepDefaults {
  /// MpiDefault of slurm.conf; empty where it could not be read.
  std::string default_mpi;
  /// The value of SLURM_CPUS_PER_TASK, which srun has ignored since Slurm 22.05; empty if unset.
  std::string job_cpus_per_task;
};

/// Advice on a possible request that lacks something: one "problem (why); what to do" each.
std::vector<std::string> advice(const Contract& contract, const ResourceRequest& request,
                                const StepDefaults& defaults);

}  // namespace trireme::launch
