// SPDX-License-Identifier: Apache-2.0
// bench_neighbour: what a busy neighbour costs. Small kernels, as a small model's step has them, on
// one thread and on several, on an otherwise idle node and beside processes that this program
// starts and that do nothing but spin; turn about in one run.

#include "trireme/base/format.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <vector>

namespace {

using namespace trireme;
using Clock = std::chrono::steady_clock;

/// Processes that keep a core busy each while this lives.
class Neighbours {
 public:
  explicit Neighbours(int count) {
    for (int one = 0; one < count; ++one) {
      const pid_t child = ::fork();
      if (child == 0) {
        ::prctl(PR_SET_PDEATHSIG, SIGKILL);
        for (;;) __builtin_ia32_pause();
      }
      if (child > 0) children_.push_back(child);
    }
  }
  Neighbours(const Neighbours&) = delete;
  Neighbours& operator=(const Neighbours&) = delete;
  ~Neighbours() {
    for (const auto child : children_) {
      ::kill(child, SIGKILL);
      ::waitpid(child, nullptr, 0);
    }
  }

 private:
  std::vector<pid_t> children_;
};

/// The larger kernels of a layer of 128 hidden units over 512 tokens, forward and backward.
class Layer {
 public:
  explicit Layer(int threads)
      : kernels_(device::make_cpu_kernels(threads)),
        arena_(device::Arena::host(device::Purpose::workspace, std::size_t{64} << 20)) {
    for (auto* tensor : {&x_, &y_}) *tensor = take({rows, hidden});
    for (auto* tensor : {&wide_, &wider_}) *tensor = take({rows, 4 * hidden});
    up_ = take({4 * hidden, hidden});
    down_ = take({hidden, 4 * hidden});
    d_up_ = take({4 * hidden, hidden});
  }

  void run() {
    kernels_->issue(device::LinearForward{x_, up_, {}, wide_});
    kernels_->issue(device::GeluForward{wide_, wider_});
    kernels_->issue(device::LinearForward{wider_, down_, {}, y_});
    kernels_->issue(device::Add{x_, y_, y_});
    kernels_->issue(device::LinearBackwardInput{y_, down_, wider_});
    kernels_->issue(device::GeluBackward{wider_, wide_, wide_});
    kernels_->issue(device::LinearBackwardWeight{wide_, x_, d_up_, {}});
    kernels_->issue(device::LinearBackwardInput{wide_, up_, y_});
  }

 private:
  static constexpr std::int64_t rows = 512;
  static constexpr std::int64_t hidden = 128;

  device::Tensor take(std::initializer_list<std::int64_t> shape) {
    auto tensor = arena_.allocate(device::DType::f32, shape);
    kernels_->issue(device::Fill{tensor, 0.01F});
    return tensor;
  }

  std::unique_ptr<device::Kernels> kernels_;
  device::Arena arena_;
  device::Tensor x_, y_, wide_, wider_, up_, down_, d_up_;
};

/// Layers a second.
double rate(Layer& layer, double seconds) {
  layer.run();
  const auto begin = Clock::now();
  std::chrono::duration<double> took{};
  std::int64_t layers = 0;
  for (; took.count() < seconds; ++layers) {
    layer.run();
    took = Clock::now() - begin;
  }
  return static_cast<double>(layers) / took.count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

int main(int argc, char** argv) {
  if (argc > 4) {
    std::cerr << "usage: bench_neighbour [THREADS [NEIGHBOURS [ROUNDS]]]\n";
    return 2;
  }
  const int threads = argc > 1 ? std::atoi(argv[1]) : 2;
  const int neighbours = argc > 2 ? std::atoi(argv[2]) : 1;
  const int rounds = argc > 3 ? std::atoi(argv[3]) : 5;
  constexpr double seconds = 0.5;
  Layer one(1);
  Layer several(threads);
  std::vector<double> alone[2];
  std::vector<double> beside[2];
  for (int round = 0; round < rounds; ++round) {
    alone[0].push_back(rate(one, seconds));
    alone[1].push_back(rate(several, seconds));
    const Neighbours busy(neighbours);
    beside[0].push_back(rate(one, seconds));
    beside[1].push_back(rate(several, seconds));
  }
  const double base = median(alone[0]);
  std::cout << base::format("layers a second, median of {} rounds; to one thread alone\n", rounds);
  for (const auto& [count, index] : {std::pair{1, 0}, std::pair{threads, 1}}) {
    const double idle = median(alone[index]);
    const double busy = median(beside[index]);
    std::cout << base::format(
        "{:>3} thread(s)  alone {:>9.0f} ({:.2f})  beside {} neighbour(s) {:>9.0f} ({:.2f})\n",
        count, idle, idle / base, neighbours, busy, busy / base);
  }
  return 0;
}
