#pragma once

#include "trireme/base/result.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/geometry.hpp"

#include <string>
#include <vector>

namespace trireme::launch {

/// Can this contract be kept by the tasks, nodes and GPUs asked for? What is not known is not
/// judged: the ranks check the mesh again when they start. Every mistake, each "what = value
/// problem (why it matters); what to do".
std::vector<std::string> impossibilities(const Contract& contract, const Geometry& geometry);

/// What the site says that matters for a step.
struct Site {
  /// MpiDefault of slurm.conf; empty where it could not be read.
  std::string default_mpi;
  /// The value of SLURM_CPUS_PER_TASK, which srun has ignored since Slurm 22.05; empty if unset.
  std::string job_cpus_per_task;
};

/// What is missing in a possible request, and matters: one "problem (why); what to do" each.
std::vector<std::string> advice(const Contract& contract, const Geometry& geometry,
                                const Site& site);

}  // namespace trireme::launch
