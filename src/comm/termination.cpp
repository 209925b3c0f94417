#include "termination.hpp"

#include <unistd.h>

#include <csignal>

namespace trireme::comm {
namespace {

constexpr int terminated = 128 + SIGTERM;

// Only what signal handlers may do.
void begin_grace(int /*signal*/) {
  ::alarm(1);
}
void end(int /*signal*/) {
  ::_exit(terminated);
}

bool is_default(int signal) {
  struct sigaction current {};
  return ::sigaction(signal, nullptr, &current) == 0 && current.sa_handler == SIG_DFL;
}

void handle(int signal, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  ::sigemptyset(&action.sa_mask);
  ::sigaction(signal, &action, nullptr);
}

}  // namespace

void outlive_termination_request() {
  if (!is_default(SIGTERM) || !is_default(SIGALRM)) return;
  handle(SIGALRM, end);
  handle(SIGTERM, begin_grace);
}

}  // namespace trireme::comm
