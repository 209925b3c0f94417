// SPDX-License-Identifier: Apache-2.0
#include "support/fault_names.hpp"

#include <signal.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstring>

namespace trireme::testing::faults {
namespace {

std::array<std::atomic<Namer>, 4> namers;

struct sigaction& former() {
  static struct sigaction action;
  return action;
}

/// Names what was touched, then lets the fault come again for whoever handled it before.
void name_fault(int /*signal*/, siginfo_t* info, void* /*context*/) {
  for (const auto& slot : namers) {
    const auto namer = slot.load();
    if (namer != nullptr && namer(info->si_addr)) break;
  }
  ::sigaction(SIGSEGV, &former(), nullptr);
}

}  // namespace

void say(const char* text) {
  // Nothing can be done about a line that cannot be written.
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, text, std::strlen(text));
}

void say(std::size_t number) {
  std::array<char, 24> digits{};
  auto place = digits.size() - 1;
  do {
    digits[--place] = static_cast<char>('0' + number % 10);
    number /= 10;
  } while (number > 0);
  say(digits.data() + place);
}

void watch(Namer namer) {
  for (auto& slot : namers) {
    Namer present = nullptr;
    if (slot.compare_exchange_strong(present, namer) || present == namer) break;
  }
  struct sigaction present {};
  ::sigaction(SIGSEGV, nullptr, &present);
  if ((present.sa_flags & SA_SIGINFO) != 0 && present.sa_sigaction == &name_fault) return;
  former() = present;
  struct sigaction mine {};
  mine.sa_sigaction = &name_fault;
  mine.sa_flags = SA_SIGINFO | SA_ONSTACK;
  ::sigemptyset(&mine.sa_mask);
  ::sigaction(SIGSEGV, &mine, nullptr);
}

}  // namespace trireme::testing::faults
