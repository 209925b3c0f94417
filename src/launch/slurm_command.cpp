// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/slurm_command.hpp"

#include "trireme/base/file.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <thread>
#include <vector>

namespace trireme::launch {
namespace {

using Clock = std::chrono::steady_clock;
constexpr std::size_t longest_answer = std::size_t{1} << 20;

/// A child that writes to `output`; 0 when it could not be started. Signals that this process
/// blocks are not blocked in it.
pid_t spawn(std::span<const std::string> words, int output) {
  posix_spawn_file_actions_t actions;
  posix_spawnattr_t attributes;
  posix_spawn_file_actions_init(&actions);
  posix_spawnattr_init(&attributes);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
  sigset_t no_signals;
  sigemptyset(&no_signals);
  posix_spawnattr_setsigmask(&attributes, &no_signals);
  posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK);
  std::vector<std::string> copies(words.begin(), words.end());
  std::vector<char*> arguments;
  for (auto& word : copies) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  const int failed =
      ::posix_spawnp(&child, arguments[0], &actions, &attributes, arguments.data(), environ);
  posix_spawnattr_destroy(&attributes);
  posix_spawn_file_actions_destroy(&actions);
  return failed == 0 ? child : 0;
}

/// Reads until the writer closes its end; false when time or room runs out.
bool read_all(const base::File& pipe, Clock::time_point end, std::string& answer) {
  for (;;) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(end - Clock::now());
    pollfd waiting{pipe.get(), POLLIN, 0};
    if (left.count() <= 0 || ::poll(&waiting, 1, static_cast<int>(left.count())) <= 0) return false;
    std::array<char, 4096> part{};
    const auto count = ::read(pipe.get(), part.data(), part.size());
    if (count <= 0) return count == 0;
    answer.append(part.data(), static_cast<std::size_t>(count));
    if (answer.size() > longest_answer) return false;
  }
}

/// The child's status, or none when it has not ended by then.
std::optional<int> await(pid_t child, Clock::time_point end) {
  int status = 0;
  for (;;) {
    if (::waitpid(child, &status, WNOHANG) == child) return status;
    if (Clock::now() >= end) return std::nullopt;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

}  // namespace

std::optional<CommandAnswer> run_slurm_command(std::span<const std::string> words,
                                               std::chrono::milliseconds patience) {
  int ends[2];
  if (words.empty() || ::pipe2(ends, O_CLOEXEC) != 0) return std::nullopt;
  const auto reader = base::File::adopt(ends[0]);
  auto writer = base::File::adopt(ends[1]);
  const pid_t child = spawn(words, writer.get());
  if (child == 0) return std::nullopt;
  static_cast<void>(writer.close());
  const auto end = Clock::now() + patience;
  CommandAnswer answer;
  const bool complete = read_all(reader, end, answer.output);
  const auto status = complete ? await(child, end) : std::nullopt;
  if (!status) {
    ::kill(child, SIGKILL);
    ::waitpid(child, nullptr, 0);
    return std::nullopt;
  }
  if (!WIFEXITED(*status)) return std::nullopt;
  answer.exit_code = WEXITSTATUS(*status);
  return answer;
}

}  // namespace trireme::launch
