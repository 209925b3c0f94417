// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/resource_request.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::spank {

/// Contexts S_CTX_LOCAL and S_CTX_ALLOCATOR (srun, sbatch, salloc): gathers the options, refuses
/// an impossible request before a job exists, and exports the contract to the job.
class SubmitSide {
 public:
  /// Notes options of an enclosing job's submission, which Slurm passes to each nested srun as if
  /// they were on its command line.
  void remember_inherited(const base::Environment& environment);
  void note_option(const launch::Option& option, std::string_view text);
  /// False after a refusal, whose text was printed.
  bool validate(launch::Command command);

 private:
  struct Noted {
    const launch::Option* option;
    std::string text;
  };

  std::map<const launch::Option*, std::string> inherited_;
  std::vector<Noted> noted_;
};

}  // namespace trireme::spank
