#include "trireme/train/stop_signal.hpp"

#include <array>
#include <csignal>

namespace trireme::train {
namespace {

constexpr std::array watched{SIGTERM, SIGUSR1, SIGINT};
/// Signal handlers may touch nothing else.
volatile std::sig_atomic_t last_signal = 0;
std::array<struct sigaction, watched.size()> before{};

void note(int signal) {
  if (signal == SIGINT && last_signal == SIGINT) {
    std::signal(SIGINT, SIG_DFL);
    std::raise(SIGINT);
  }
  last_signal = signal;
}

}  // namespace

StopSignal::StopSignal() {
  struct sigaction action {};
  action.sa_handler = note;
  action.sa_flags = SA_RESTART;
  for (std::size_t index = 0; index < watched.size(); ++index) {
    sigaction(watched[index], &action, &before[index]);
  }
}

StopSignal::~StopSignal() {
  for (std::size_t index = 0; index < watched.size(); ++index) {
    sigaction(watched[index], &before[index], nullptr);
  }
  last_signal = 0;
}

int StopSignal::received() {
  return last_signal;
}

}  // namespace trireme::train
