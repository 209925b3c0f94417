#pragma once

#include "trireme/base/environment.hpp"

#include <chrono>
#include <optional>

namespace trireme::runtime {

/// When Slurm's time limit ends this job: from SLURM_JOB_END_TIME where Slurm sets it (not before
/// 23.02), else squeue is asked, once and by the first rank alone. None outside of a job, without a
/// limit, on other ranks, and when Slurm does not answer within seconds. Call it before MPI starts.
std::optional<std::chrono::steady_clock::time_point> find_job_end(
    const base::Environment& environment);

}  // namespace trireme::runtime
