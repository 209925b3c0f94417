// SPDX-License-Identifier: Apache-2.0
#include "callbacks.hpp"

#include "trireme/base/environment.hpp"
#include "trireme/base/format.hpp"

#include "submit_command.hpp"

#include <unistd.h>

#include <cstdio>

namespace trireme::spank {
namespace {

/// Strings of the options, which Slurm keeps pointers to.
std::vector<std::string>& texts() {
  static std::vector<std::string> all;
  return all;
}

void register_options(spank_t spank, spank_opt_cb_f note) {
  if (texts().empty()) {
    for (const auto& option : launch::options()) {
      for (const std::string_view text :
           {option.name, std::string_view(option.argument), option.usage}) {
        texts().emplace_back(text);
      }
    }
  }
  for (std::size_t index = 0; index < launch::options().size(); ++index) {
    spank_option option{};
    option.name = texts()[3 * index].data();
    option.arginfo = texts()[3 * index + 1].data();
    option.usage = texts()[3 * index + 2].data();
    option.has_arg = 1;
    option.val = static_cast<int>(index);
    option.cb = note;
    if (spank_option_register(spank, &option) != ESPANK_SUCCESS) {
      slurm_error("trireme: Slurm does not take the option --%s", option.name);
    }
  }
}

bool submits(spank_context_t context) {
  return context == S_CTX_LOCAL || context == S_CTX_ALLOCATOR;
}

/// Ends srun, sbatch or salloc before the command requests a job. An error code is not enough: the
/// commands ignore it from plugins that plugstack.conf declares optional. The command has started
/// nothing yet, so nothing is undone here, least of all by running its exit handlers inside a
/// callback.
[[noreturn]] void leave() {
  std::fflush(nullptr);
  ::_exit(static_cast<int>(base::ExitCode::usage));
}

/// A variable of the job's environment; none when it is not there.
std::optional<std::string> job_variable(spank_t spank, std::string_view name) {
  std::string value(256, '\0');
  const std::string variable(name);
  for (;;) {
    const auto status =
        spank_getenv(spank, variable.c_str(), value.data(), static_cast<int>(value.size()));
    if (status == ESPANK_SUCCESS) return value.substr(0, value.find('\0'));
    // An encoded contract is at most 64 KiB; what is longer is not one.
    if (status != ESPANK_NOSPACE || value.size() > 128 * 1024) return std::nullopt;
    value.assign(value.size() * 8, '\0');
  }
}

}  // namespace

int Callbacks::init(spank_t spank, int count, char** arguments, spank_opt_cb_f note) {
  const auto context = spank_context();
  if (!submits(context) && context != S_CTX_REMOTE) return ESPANK_SUCCESS;
  options_ = read_plugstack_options({arguments, arguments + count});
  register_options(spank, note);
  if (context == S_CTX_LOCAL) submit_side_.remember_inherited(base::Environment::capture(environ));
  return ESPANK_SUCCESS;
}

int Callbacks::option(int option_index, const char* argument, bool remote) {
  const auto all = launch::options();
  const auto index = static_cast<std::size_t>(option_index);
  if (index >= all.size() || argument == nullptr) return ESPANK_SUCCESS;
  if (!remote) {
    submit_side_.note_option(all[index], argument);
    return ESPANK_SUCCESS;
  }
  // Needed only where the variable of the contract did not arrive. A list arrives as its last
  // entry, twice: adding it once is all that can be done.
  const auto value = launch::parse_value(all[index], argument, all[index].name);
  if (!value) return ESPANK_SUCCESS;
  remote_options_.drop(all[index].name);
  remote_options_.put({&all[index], *value, base::format("srun --{}", all[index].name)});
  return ESPANK_SUCCESS;
}

int Callbacks::options_done(spank_t spank) {
  if (submits(spank_context())) {
    const auto command =
        spank_context() == S_CTX_LOCAL ? launch::Command::srun : allocating_command();
    if (!submit_side_.validate(command)) leave();
    return ESPANK_SUCCESS;
  }
  if (spank_context() != S_CTX_REMOTE) return ESPANK_SUCCESS;
  auto contract = remote_options_;
  if (const auto encoded = job_variable(spank, launch::encoded_variable)) {
    auto decoded = launch::decode(*encoded);
    if (!decoded) {
      slurm_error("trireme: %s", decoded.failure().text.c_str());
      return ESPANK_SUCCESS;
    }
    contract = *std::move(decoded);
  }
  if (!contract.settings().empty()) slurmstepd_side_.emplace(options_, std::move(contract), spank);
  return ESPANK_SUCCESS;
}

int Callbacks::raise_limits() {
  if (slurmstepd_side_) slurmstepd_side_->raise_hard_limits();
  return ESPANK_SUCCESS;
}

int Callbacks::prepare_task(spank_t spank) {
  if (slurmstepd_side_) slurmstepd_side_->prepare_task(spank);
  return ESPANK_SUCCESS;
}

int Callbacks::record_task(spank_t spank) {
  if (slurmstepd_side_) slurmstepd_side_->record_task(spank);
  return ESPANK_SUCCESS;
}

int Callbacks::end() {
  slurmstepd_side_.reset();
  return ESPANK_SUCCESS;
}

int Callbacks::job_ended(spank_t spank, int count, char** arguments) {
  std::uint32_t job = 0;
  if (spank_get_item(spank, S_JOB_ID, &job) != ESPANK_SUCCESS) return ESPANK_SUCCESS;
  remove_job_folder(read_plugstack_options({arguments, arguments + count}), job);
  return ESPANK_SUCCESS;
}

}  // namespace trireme::spank
