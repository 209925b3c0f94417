#include "trireme/runtime/time_limit.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/log.hpp"
#include "trireme/launch/geometry.hpp"
#include "trireme/runtime/identity.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <charconv>
#include <csignal>
#include <ctime>
#include <string>

namespace trireme::runtime {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto patience = std::chrono::seconds(5);
constexpr std::size_t longest_answer = 256;

/// What squeue writes until it ends, or until patience does.
std::string answer_of(const base::File& pipe) {
  const auto end = Clock::now() + patience;
  std::string answer;
  while (answer.size() < longest_answer) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd waiting{pipe.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) break;
    char part[longest_answer];
    const auto count = ::read(pipe.get(), part, sizeof part);
    if (count <= 0) break;
    answer.append(part, static_cast<std::size_t>(count));
  }
  return answer;
}

/// "4:58", "UNLIMITED": the time that the job has left, in Slurm's words; empty when it is silent.
std::string ask_squeue(const std::string& job) {
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0) return {};
  const auto reader = base::File::adopt(ends[0]);
  auto writer = base::File::adopt(ends[1]);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, writer.get(), STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  std::string words[] = {"squeue", "--noheader", "--format=%L", "--jobs=" + job};
  char* const arguments[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                             nullptr};
  pid_t child = 0;
  const int failed = ::posix_spawnp(&child, arguments[0], &actions, nullptr, arguments, environ);
  posix_spawn_file_actions_destroy(&actions);
  if (failed != 0) return {};
  static_cast<void>(writer.close());
  auto answer = answer_of(reader);
  ::kill(child, SIGKILL);
  ::waitpid(child, nullptr, 0);
  return answer.substr(0, answer.find('\n'));
}

}  // namespace

std::optional<Clock::time_point> find_job_end(const base::Environment& environment) {
  const auto job = environment.get("SLURM_JOB_ID");
  if (!job || job->find_first_not_of("0123456789") != std::string::npos) return std::nullopt;
  const auto identity = identify(environment);
  if (identity.ok() && identity->announced_rank.value_or(0) != 0) return std::nullopt;
  const auto now = Clock::now();
  if (const auto text = environment.get("SLURM_JOB_END_TIME")) {
    std::int64_t end = 0;
    const auto parsed = std::from_chars(text->data(), text->data() + text->size(), end);
    const auto left = end - std::int64_t{std::time(nullptr)};
    // Slurm's "never" is about a year away.
    if (parsed.ec != std::errc{} || left > 400LL * 86400) return std::nullopt;
    return now + std::chrono::seconds(left);
  }
  const auto left = launch::parse_slurm_time(ask_squeue(*job));
  if (!left) return std::nullopt;
  base::log::debug("runtime", "job {} has {} s left", *job, *left);
  return now + std::chrono::seconds(*left);
}

}  // namespace trireme::runtime
