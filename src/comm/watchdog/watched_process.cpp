// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/watched_process.hpp"

#include "trireme/base/format.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <sstream>

namespace trireme::comm {
namespace {

/// Fields of proc(5)'s stat behind the name, which may hold anything: state is the first.
std::string fields_after_name(int number) {
  const auto text = base::read_text_file(base::format("/proc/{}/stat", number));
  if (!text.ok()) return {};
  const auto after_name = text->rfind(')');
  return after_name == std::string::npos || after_name + 2 >= text->size()
             ? std::string{}
             : text->substr(after_name + 2);
}

std::string start_time_of(int number) {
  // Field 22 of the line is the 20th behind the name.
  constexpr int place = 20;
  std::istringstream fields(fields_after_name(number));
  std::string field;
  for (int i = 0; i < place; ++i) {
    if (!(fields >> field)) return {};
  }
  return field;
}

}  // namespace

char process_state(int number) {
  const auto fields = fields_after_name(number);
  return fields.empty() ? '?' : fields.front();
}

WatchedProcess::WatchedProcess(int number, Means first) : number_(number) {
  if (first == Means::descriptor) {
    const auto raw = ::syscall(SYS_pidfd_open, number, 0);
    descriptor_ = base::File::adopt(static_cast<int>(raw));
  }
  if (!descriptor_ && first != Means::none) start_time_ = start_time_of(number);
}

WatchedProcess::Means WatchedProcess::means() const {
  if (descriptor_) return Means::descriptor;
  return start_time_.empty() ? Means::none : Means::start_time;
}

WatchedProcess::Life WatchedProcess::life() const {
  switch (means()) {
    case Means::descriptor: {
      pollfd ended{descriptor_.get(), POLLIN, 0};
      return ::poll(&ended, 1, 0) == 1 ? Life::ended : Life::running;
    }
    case Means::start_time: {
      const bool same = start_time_of(number_) == start_time_;
      // Zombie: its parent has not waited for it yet.
      const char state = process_state(number_);
      return same && state != 'Z' && state != 'X' ? Life::running : Life::ended;
    }
    case Means::none:
      break;
  }
  return Life::unknown;
}

void WatchedProcess::kill() const {
  if (life() != Life::running) return;
  if (descriptor_) {
    ::syscall(SYS_pidfd_send_signal, descriptor_.get(), SIGKILL, nullptr, 0);
  } else {
    ::kill(number_, SIGKILL);
  }
}

}  // namespace trireme::comm
