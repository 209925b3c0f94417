// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/sigterm_grace.hpp"

#include <sys/signalfd.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <thread>

namespace trireme::comm {
namespace {

constexpr int terminated = 128 + SIGTERM;
constexpr std::chrono::seconds grace{1};

[[noreturn]] void await_request(int signals) {
  signalfd_siginfo arrived{};
  while (::read(signals, &arrived, sizeof arrived) < 0 && errno == EINTR) {
  }
  std::this_thread::sleep_for(grace);
  ::_exit(terminated);
}

bool is_default(int signal) {
  struct sigaction current {};
  return ::sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_DFL;
}

}  // namespace

void defer_sigterm() {
  if (!is_default(SIGTERM)) return;
  sigset_t requests;
  sigset_t before;
  ::sigemptyset(&requests);
  ::sigaddset(&requests, SIGTERM);
  ::pthread_sigmask(SIG_BLOCK, &requests, &before);
  // A signal that is already blocked has another reader, as in the trainer.
  if (::sigismember(&before, SIGTERM) == 1) return;
  const int signals = ::signalfd(-1, &requests, SFD_CLOEXEC);
  if (signals < 0) {
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
    return;
  }
  std::thread([signals] { await_request(signals); }).detach();
}

}  // namespace trireme::comm
