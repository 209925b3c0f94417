// SPDX-License-Identifier: Apache-2.0
#include "support/program.hpp"

#include <fcntl.h>
#include <poll.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <stdexcept>

namespace trireme::tests {
namespace {

/// A pipe that programs do not inherit unless told so.
struct Pipe {
  Pipe() {
    std::array<int, 2> ends{};
    if (::pipe2(ends.data(), O_CLOEXEC) != 0) throw std::runtime_error("pipe2 failed");
    read_end = ends[0];
    write_end = ends[1];
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    close_read();
    close_write();
  }
  /// A terminal in the place of the pipe: what is written to it is read here.
  void become_terminal() {
    close_read();
    close_write();
    read_end = ::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
    std::array<char, 128> name{};
    if (read_end < 0 || ::grantpt(read_end) != 0 || ::unlockpt(read_end) != 0 ||
        ::ptsname_r(read_end, name.data(), name.size()) != 0) {
      throw std::runtime_error("cannot make a terminal");
    }
    write_end = ::open(name.data(), O_RDWR | O_NOCTTY | O_CLOEXEC);
    if (write_end < 0) throw std::runtime_error("cannot open a terminal");
  }
  void close_read() { close(read_end); }
  void close_write() { close(write_end); }

  int read_end = -1;
  int write_end = -1;

 private:
  static void close(int& descriptor) {
    if (descriptor >= 0) ::close(descriptor);
    descriptor = -1;
  }
};

struct FileActions {
  FileActions() { ::posix_spawn_file_actions_init(&raw); }
  FileActions(const FileActions&) = delete;
  FileActions& operator=(const FileActions&) = delete;
  ~FileActions() { ::posix_spawn_file_actions_destroy(&raw); }
  posix_spawn_file_actions_t raw{};
};

std::vector<char*> pointers(std::vector<std::string>& texts) {
  std::vector<char*> list;
  for (auto& text : texts) list.push_back(text.data());
  list.push_back(nullptr);
  return list;
}

pid_t spawn(const ProgramStart& start, const Pipe& in, const Pipe& out, const Pipe& err) {
  FileActions actions;
  if (!start.folder.empty()) {
    ::posix_spawn_file_actions_addchdir_np(&actions.raw, start.folder.c_str());
  }
  ::posix_spawn_file_actions_adddup2(&actions.raw, in.read_end, 0);
  if (start.out_to == "closed") {
    ::posix_spawn_file_actions_addclose(&actions.raw, 1);
  } else if (start.out_to.empty() || start.out_to == "unread") {
    ::posix_spawn_file_actions_adddup2(&actions.raw, out.write_end, 1);
  } else {
    ::posix_spawn_file_actions_addopen(&actions.raw, 1, start.out_to.c_str(), O_WRONLY, 0);
  }
  ::posix_spawn_file_actions_adddup2(&actions.raw, err.write_end, 2);

  std::vector<std::string> arguments{start.program.string()};
  arguments.insert(arguments.end(), start.arguments.begin(), start.arguments.end());
  std::vector<std::string> environment;
  for (const auto& [name, value] : start.environment) {
    environment.push_back(name);
    environment.back().append("=").append(value);
  }
  // A group of its own: what does not end in time is ended with all that it has started.
  ::posix_spawnattr_t attributes{};
  ::posix_spawnattr_init(&attributes);
  ::posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP);
  pid_t process = -1;
  const int problem = ::posix_spawnp(&process, start.program.c_str(), &actions.raw, &attributes,
                                     pointers(arguments).data(), pointers(environment).data());
  ::posix_spawnattr_destroy(&attributes);
  if (problem != 0) {
    throw std::runtime_error("cannot start " + start.program.string() + ": " +
                             std::strerror(problem));
  }
  return process;
}

/// Reads both ends until both are closed; false when the time is over.
bool read_all(Pipe& out, Pipe& err, ProgramEnd& end, double timeout_seconds) {
  using Clock = std::chrono::steady_clock;
  const auto deadline = Clock::now() + std::chrono::duration<double>(timeout_seconds);
  std::array<pollfd, 2> polled{{{out.read_end, POLLIN, 0}, {err.read_end, POLLIN, 0}}};
  std::array<std::string*, 2> texts{&end.out, &end.err};
  while (polled[0].fd >= 0 || polled[1].fd >= 0) {
    if (Clock::now() >= deadline) return false;
    ::poll(polled.data(), polled.size(), 100);
    for (std::size_t index = 0; index < polled.size(); ++index) {
      if (polled[index].fd < 0 || polled[index].revents == 0) continue;
      std::array<char, 65536> block{};
      const auto count = ::read(polled[index].fd, block.data(), block.size());
      if (count > 0) texts[index]->append(block.data(), static_cast<std::size_t>(count));
      if (count == 0 || (count < 0 && errno != EINTR)) polled[index].fd = -1;
    }
  }
  return true;
}

/// All that is written here fits into a pipe; more would need a thread.
void feed(Pipe& in, const std::string& text) {
  if (text.size() > 60'000) throw std::runtime_error("standard input of a test is too long");
  if (::write(in.write_end, text.data(), text.size()) < 0) {
    throw std::runtime_error("cannot write standard input");
  }
  in.close_write();
}

}  // namespace

ProgramEnd run_program(const ProgramStart& start) {
  Pipe in;
  Pipe out;
  Pipe err;
  if (start.err_to == ProgramStart::Err::terminal) err.become_terminal();
  feed(in, start.in);
  if (start.out_to == "unread") out.close_read();
  const pid_t process = spawn(start, in, out, err);
  out.close_write();
  err.close_write();

  ProgramEnd end;
  const bool in_time = read_all(out, err, end, start.timeout_seconds);
  if (!in_time) ::kill(-process, SIGKILL);
  int status = 0;
  while (::waitpid(process, &status, 0) < 0 && errno == EINTR) {
  }
  if (!in_time) {
    throw std::runtime_error(start.program.string() + " did not end in time; it said: " + end.err);
  }
  end.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  return end;
}

}  // namespace trireme::tests
