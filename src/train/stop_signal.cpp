// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/stop_signal.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/signalfd.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <thread>

namespace trireme::train {
namespace {

std::atomic<int> last_signal{0};

sigset_t watched_signals() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : {SIGTERM, SIGUSR1, SIGINT}) sigaddset(&set, signal);
  return set;
}

base::File opened(int descriptor, const char* what) {
  if (descriptor < 0) throw base::Error(base::ExitCode::internal, what);
  return base::File::adopt(descriptor);
}

/// Ends the process by SIGINT's default action.
void end_at_once() {
  std::signal(SIGINT, SIG_DFL);
  const auto watched = watched_signals();
  pthread_sigmask(SIG_UNBLOCK, &watched, nullptr);
  std::raise(SIGINT);
}

}  // namespace

struct StopSignal::Watch {
  sigset_t before{};
  base::File signals;
  base::File end;
  std::thread thread;

  Watch() {
    const auto watched = watched_signals();
    pthread_sigmask(SIG_BLOCK, &watched, &before);
    signals = opened(::signalfd(-1, &watched, SFD_CLOEXEC), "signalfd failed");
    end = opened(::eventfd(0, EFD_CLOEXEC), "eventfd failed");
    thread = std::thread([this] { run(); });
  }

  ~Watch() {
    // Adding one to an event counter cannot fail, short of its largest number.
    ::eventfd_write(end.get(), 1);
    thread.join();
    pthread_sigmask(SIG_SETMASK, &before, nullptr);
    last_signal = 0;
  }

  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void run() const {
    std::array<pollfd, 2> waiting{pollfd{signals.get(), POLLIN, 0}, pollfd{end.get(), POLLIN, 0}};
    for (;;) {
      if (::poll(waiting.data(), waiting.size(), -1) < 0) continue;
      if (waiting[1].revents != 0) return;
      signalfd_siginfo arrived{};
      if (::read(signals.get(), &arrived, sizeof arrived) != sizeof arrived) continue;
      const auto signal = static_cast<int>(arrived.ssi_signo);
      if (last_signal.exchange(signal) == SIGINT && signal == SIGINT) end_at_once();
    }
  }
};

StopSignal::StopSignal() : watch_(std::make_unique<Watch>()) {}

StopSignal::~StopSignal() = default;

int StopSignal::received() {
  return last_signal;
}

}  // namespace trireme::train
