// SPDX-License-Identifier: Apache-2.0
#include "apps/local_ranks.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/record/task_record.hpp"
#include "trireme/runtime/identity.hpp"

#include "apps/cli/terminal.hpp"
#include "apps/exit_codes.hpp"

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;

/// Exit code of a shell for a program that it does not find.
constexpr int not_found = 127;

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGCHLD}) sigaddset(&set, signal);
  return set;
}

/// Scope in which signals of `set` wait for sigwaitinfo().
class Blocked {
 public:
  explicit Blocked(const sigset_t& set) { pthread_sigmask(SIG_BLOCK, &set, &before_); }
  ~Blocked() { pthread_sigmask(SIG_SETMASK, &before_, nullptr); }
  Blocked(const Blocked&) = delete;
  Blocked& operator=(const Blocked&) = delete;
  const sigset_t& before() const { return before_; }

 private:
  sigset_t before_{};
};

/// Null-terminated array for exec; it points into `texts`.
std::vector<char*> pointers_to(std::vector<std::string>& texts) {
  std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  return pointers;
}

std::vector<std::string> command_for(int ranks, const std::vector<std::string>& arguments) {
  // Only this node, whatever a host file or a batch system would add; --quiet, because mpirun's own
  // messages about failed ranks repeat the ranks' own.
  std::vector<std::string> command{
      "mpirun", "-n",       format("{}", ranks), "--host", "localhost",       "--mca",
      "plm",    "isolated", "--bind-to",         "none",   "--oversubscribe", "--quiet"};
  command.push_back(std::filesystem::read_symlink("/proc/self/exe").string());
  command.insert(command.end(), arguments.begin(), arguments.end());
  return command;
}

/// True of what mpirun gives to its ranks, where it was inherited from one that did not start this
/// process: another mpirun refuses it as a call of itself, or looks for the daemons of the first.
/// Parameters that users set are kept.
bool is_of_ranks(std::string_view name) {
  constexpr std::string_view parameter = "OMPI_MCA_";
  if (name.starts_with("PMIX_")) return !name.starts_with("PMIX_MCA_");
  if (!name.starts_with(parameter)) {
    return name.starts_with("OMPI_") && !name.starts_with("OMPI_ALLOW_");
  }
  name.remove_prefix(parameter.size());
  return name.starts_with("orte_") || name.starts_with("ess") || name == "pmix" ||
         name == "initial_wdir" || name == "shmem_RUNTIME_QUERY_hint";
}

std::vector<std::string> variables_for(const base::Environment& environment) {
  auto variables = environment.variables();
  std::erase_if(variables, [](const auto& each) { return is_of_ranks(each.first); });
  const std::string yes = "1";
  if (::geteuid() == 0) {
    // mpirun refuses root unless both variables are set.
    variables["OMPI_ALLOW_RUN_AS_ROOT"] = yes;
    variables["OMPI_ALLOW_RUN_AS_ROOT_CONFIRM"] = yes;
  }
  // The ranks' stderr is a pipe of mpirun's, which writes to this terminal.
  if (base::log::settings().colour) variables["FORCE_COLOR"] = yes;
  const auto terminal = terminal_path(environment);
  if (!terminal.empty()) variables[std::string(terminal_variable)] = terminal;
  std::vector<std::string> entries;
  for (const auto& [name, value] : variables) entries.push_back(format("{}={}", name, value));
  return entries;
}

/// Starts a child that runs the command: in a process group of its own, so that a terminal's Ctrl-C
/// reaches only this process; the child ends with this process.
pid_t spawn(std::vector<std::string> command, std::vector<std::string> variables,
            const sigset_t& mask) {
  const auto words = pointers_to(command);
  const auto entries = pointers_to(variables);
  const pid_t parent = ::getpid();
  const pid_t child = ::fork();
  if (child != 0) return child;
  // Only async-signal-safe calls after the fork.
  ::setpgid(0, 0);
  ::prctl(PR_SET_PDEATHSIG, SIGTERM);
  if (::getppid() != parent) ::_exit(not_found);
  const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
  ::pthread_sigmask(SIG_SETMASK, &mask, nullptr);
  ::execvpe(words[0], words.data(), entries.data());
  ::_exit(not_found);
}

/// A shell's exit code for a program that a signal has ended; mpirun uses it for its ranks, too.
constexpr int killed = 128;
/// Linux numbers signals up to this one; mpirun has codes of its own above.
constexpr int last_signal = 64;

/// The child's exit code as a shell gives it, or -1 while it runs.
int code_of(pid_t child) {
  int status = 0;
  if (::waitpid(child, &status, WNOHANG) != child) return -1;
  return WIFEXITED(status) ? WEXITSTATUS(status) : killed + WTERMSIG(status);
}

/// Clears what a rank has drawn on this terminal: the next line is this process's own.
void clear_status_line() {
  if (::isatty(STDERR_FILENO) == 1) std::fputs("\r\033[K", stderr);
}

struct ChildEnd {
  int code = 0;         ///< as a shell gives it
  bool forced = false;  ///< by a second signal to this process
};

/// Passes signals on until the child has ended.
ChildEnd attend(pid_t child, const sigset_t& watched) {
  bool asked = false;
  bool forced = false;
  for (;;) {
    if (const int code = code_of(child); code >= 0) return {code, forced};
    const int signal = ::sigwaitinfo(&watched, nullptr);
    if (signal < 0 || signal == SIGCHLD) continue;
    forced = forced || (asked && signal != SIGUSR1);
    // mpirun forwards SIGUSR1 to its ranks, which save; SIGTERM ends them and mpirun.
    ::kill(child, forced ? SIGTERM : SIGUSR1);
    if (!asked) {
      clear_status_line();
      base::log::info("train", "{}: the ranks are asked to save and stop (SIGUSR1)",
                      record::signal_text(signal));
    }
    asked = true;
  }
}

/// Sentence on the folder in which mpirun keeps its files; empty where it can be written.
std::string temporary_folder_fault(const base::Environment& environment) {
  for (const auto* variable : {"TMPDIR", "TEMP", "TMP"}) {
    const auto folder = environment.get(variable);
    if (!folder) continue;
    std::error_code error;
    std::filesystem::create_directories(*folder, error);
    if (!error && ::access(folder->c_str(), W_OK | X_OK) != 0) {
      error.assign(errno, std::generic_category());
    }
    if (!error) return {};
    return format(
        "{}={} cannot be written ({}), and mpirun keeps its files there; unset {}, or "
        "name a folder that can be written",
        variable, *folder, error.message(), variable);
  }
  return {};
}

/// End of the ranks from mpirun's exit code.
RanksEnd end_by(const ChildEnd& end, const base::Environment& environment) {
  if (end.forced) return {ExitCode::peer, SIGTERM};
  const int code = end.code;
  const bool is_ours = std::any_of(
      exit_meanings.begin(), exit_meanings.end(),
      [&](const ExitMeaning& meaning) { return static_cast<int>(meaning.code) == code; });
  if (is_ours) return {static_cast<ExitCode>(code), 0};
  if (code > killed && code <= killed + last_signal) return {ExitCode::peer, code - killed};
  if (code == not_found) {
    throw base::Error(ExitCode::launch,
                      "mpirun was not found in PATH (--ranks starts ranks with it); install "
                      "openmpi-bin, or start ranks with a launcher of your own");
  }
  const auto fault = temporary_folder_fault(environment);
  throw base::Error(ExitCode::launch,
                    fault.empty() ? format("mpirun ended with {}, which is no exit code of Trireme "
                                           "(MPI failed before the ranks began; lines above are "
                                           "its own); mend what they name",
                                           code)
                                  : fault);
}

}  // namespace

base::Status may_start_ranks(int ranks, const base::Environment& environment) {
  const auto identity = runtime::identify(environment);
  if (!identity.ok()) return identity.failure();
  const bool was_started =
      identity->launcher != runtime::Launcher::none && !runtime::is_inherited(*identity);
  if (was_started) {
    return base::Failure{
        ExitCode::launch,
        format("--ranks {} does not go with {}, which has started this process already (--ranks "
               "starts ranks by itself, on this node); leave one of the two out",
               ranks, runtime::name(identity->launcher))};
  }
  if (!identity->job.empty()) {
    return base::Failure{
        ExitCode::launch,
        format("--ranks {} does not go with Slurm job {} (inside of a job, ranks are tasks of a "
               "step); start with srun --mpi=pmix -n {} trireme train, without --ranks",
               ranks, identity->job, ranks)};
  }
  return {};
}

std::vector<std::string> without_ranks_option(const std::vector<std::string>& arguments) {
  std::vector<std::string> kept;
  for (std::size_t at = 0; at < arguments.size(); ++at) {
    if (arguments[at] == "--ranks") {
      ++at;
    } else if (!arguments[at].starts_with("--ranks=")) {
      kept.push_back(arguments[at]);
    }
  }
  return kept;
}

RanksEnd start_ranks(int ranks, const std::vector<std::string>& arguments,
                     const base::Environment& environment) {
  const auto watched = watched_signals();
  const Blocked blocked(watched);
  const pid_t child =
      spawn(command_for(ranks, arguments), variables_for(environment), blocked.before());
  if (child < 0) {
    throw base::Error(ExitCode::launch, format("cannot start mpirun: {}", std::strerror(errno)));
  }
  return end_by(attend(child, watched), environment);
}

}  // namespace trireme::apps
