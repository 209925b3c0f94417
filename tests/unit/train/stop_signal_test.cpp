// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/stop_signal.hpp"

#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include <catch2/catch.hpp>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

using namespace trireme;
using namespace std::chrono_literals;

namespace {

int received_within(std::chrono::seconds patience) {
  const auto end = std::chrono::steady_clock::now() + patience;
  while (train::StopSignal::received() == 0 && std::chrono::steady_clock::now() < end) {
    std::this_thread::sleep_for(1ms);
  }
  return train::StopSignal::received();
}

}  // namespace

TEST_CASE("a signal to the process is noted, and forgotten with the watch") {
  {
    const train::StopSignal signal;
    CHECK(train::StopSignal::received() == 0);
    ::kill(::getpid(), SIGTERM);
    CHECK(received_within(10s) == SIGTERM);
  }
  CHECK(train::StopSignal::received() == 0);
}

TEST_CASE("the threads that compute never take the watched signals") {
  sigset_t before;
  pthread_sigmask(SIG_BLOCK, nullptr, &before);
  CHECK(sigismember(&before, SIGUSR1) == 0);
  {
    const train::StopSignal signal;
    int blocked_here = 0;
    int blocked_in_a_new_thread = 0;
    const auto look = [](int& blocked) {
      sigset_t mask;
      pthread_sigmask(SIG_BLOCK, nullptr, &mask);
      for (const int watched : {SIGTERM, SIGUSR1, SIGINT}) blocked += sigismember(&mask, watched);
    };
    look(blocked_here);
    std::thread(look, std::ref(blocked_in_a_new_thread)).join();
    CHECK(blocked_here == 3);
    CHECK(blocked_in_a_new_thread == 3);
  }
  sigset_t after;
  pthread_sigmask(SIG_BLOCK, nullptr, &after);
  CHECK(sigismember(&after, SIGUSR1) == 0);
}

TEST_CASE("matrix products survive a hail of signals") {
  const train::StopSignal signal;
  const auto kernels = device::make_cpu_kernels(1);
  auto arena = device::Arena::host(device::Purpose::workspace, std::size_t{8} << 20);
  const auto x = arena.allocate(device::DType::f32, {512, 256});
  const auto w = arena.allocate(device::DType::f32, {704, 256});
  const auto y = arena.allocate(device::DType::f32, {512, 704});
  kernels->issue(device::Fill{x, 1.0F});
  kernels->issue(device::Fill{w, 0.5F});
  std::atomic<bool> enough{false};
  std::thread sender([&] {
    while (!enough) {
      ::kill(::getpid(), SIGUSR1);
      std::this_thread::sleep_for(50us);
    }
  });
  for (int repeat = 0; repeat < 200; ++repeat) kernels->issue(device::LinearForward{x, w, {}, y});
  enough = true;
  sender.join();
  CHECK(y.f32()[0] == 128.0F);
  CHECK(received_within(10s) == SIGUSR1);
}
