// SPDX-License-Identifier: Apache-2.0
#include "submit_side.hpp"

#include "trireme/base/format.hpp"
#include "trireme/launch/validation.hpp"

#include "spank.hpp"
#include "submit_command.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>

namespace trireme::spank {
namespace {

using base::format;
using launch::Command;
using launch::Contract;

/// Environment of this command, and the contract that it holds.
struct SubmitEnvironment {
  base::Environment environment;
  Contract contract;
  std::vector<std::string> mistakes;
};

SubmitEnvironment submit_environment(Command command) {
  SubmitEnvironment found{base::Environment::capture(environ), {}, {}};
  // Inheritance: sbatch and salloc start a job of its own, which inherits nothing from an enclosing
  // one.
  const auto inherit = command == Command::srun ? launch::Inherit::yes : launch::Inherit::no;
  auto contract = launch::read_contract(found.environment, inherit);
  if (contract) {
    found.contract = *std::move(contract);
  } else {
    found.mistakes.push_back(contract.failure().text);
  }
  return found;
}

launch::ResourceRequest resource_request_of(Command command, const base::Environment& environment) {
  const auto arguments = command_arguments();
  auto request = launch::read_resource_request(command, environment, {}, arguments);
  if (command != Command::sbatch) return request;
  const auto script = batch_script(request.program, arguments);
  return launch::read_resource_request(command, environment, launch::batch_words(script),
                                       arguments);
}

/// Exports the contract in a variable that tasks read even on nodes without the plugin.
void export_contract(const Contract& contract) {
  if (contract.settings().empty()) {
    ::unsetenv(std::string(launch::encoded_variable).c_str());
  } else {
    ::setenv(std::string(launch::encoded_variable).c_str(), launch::encode(contract).c_str(), 1);
  }
  const auto variables = launch::variables(contract);
  for (const auto& option : launch::options()) {
    const std::string name(option.variable);
    const auto found = variables.find(name);
    if (found == variables.end()) {
      ::unsetenv(name.c_str());
    } else {
      ::setenv(name.c_str(), found->second.c_str(), 1);
    }
  }
}

bool refuse(const std::vector<std::string>& mistakes) {
  for (const auto& mistake : mistakes) slurm_error("trireme: %s", mistake.c_str());
  return mistakes.empty();
}

}  // namespace

void SubmitSide::remember_inherited(const base::Environment& environment) {
  for (const auto& option : launch::options()) {
    auto suffix = format("_SLURM_SPANK_OPTION_trireme_{}", option.name);
    std::replace(suffix.begin(), suffix.end(), '-', '_');
    for (const auto& [name, value] : environment.variables()) {
      if (name.ends_with(suffix)) inherited_[&option] = value;
    }
  }
}

void SubmitSide::note_option(const launch::Option& option, std::string_view text) {
  const auto inherited = inherited_.find(&option);
  if (inherited != inherited_.end()) {
    const bool same = inherited->second == text;
    inherited_.erase(inherited);
    if (same) return;
  }
  noted_.push_back({&option, std::string(text)});
}

bool SubmitSide::validate(Command command) {
  auto [environment, contract, mistakes] = submit_environment(command);
  Contract explicitly;
  for (const auto& [option, text] : noted_) {
    auto value = launch::parse_value(*option, text, format("--{}", option->name));
    if (value) {
      explicitly.put(
          {option, *std::move(value), format("{} --{}", launch::name(command), option->name)});
    } else {
      mistakes.push_back(value.failure().text);
    }
  }
  if (!refuse(mistakes)) return false;
  // Option off removes the contract in force around this command; other options beside it are
  // errors.
  if (explicitly.off()) contract = {};
  contract.put_all(explicitly);
  // The contract of an enclosing job must not reach another job.
  const bool stale = environment.has(launch::encoded_variable);
  if (contract.settings().empty() && !stale) return true;
  if (!contract.settings().empty()) {
    const auto request = resource_request_of(command, environment);
    // A step of any size may run inside a job: only the options of this step itself must fit it.
    const bool validated = !request.in_allocation || !explicitly.settings().empty();
    if (validated && !refuse(launch::validate(contract, request))) return false;
    const launch::StepDefaults defaults{default_mpi(environment.get("SLURM_CONF").value_or("")),
                                        environment.get("SLURM_CPUS_PER_TASK").value_or("")};
    for (const auto& text : launch::advice(contract, request, defaults)) {
      slurm_info("trireme: %s", text.c_str());
    }
  }
  export_contract(contract);
  return true;
}

}  // namespace trireme::spank
