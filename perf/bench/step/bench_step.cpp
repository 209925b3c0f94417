// SPDX-License-Identifier: Apache-2.0
// bench_step: where the time of a GPT-2 124M training step goes on one core, by phase, and which
// share of the core's peak the phases reach that arithmetic bounds.
//
// One thread and its processor time: neighbours on a shared machine change that by a few percent
// only. The best of several calls of each kernel counts.

#include "trireme/base/format.hpp"
#include "trireme/device/measure.hpp"

#include "step_work.hpp"

#include <time.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>
#include <string>

namespace {

using namespace trireme;

constexpr int tries = 4;

double thread_seconds() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

double best_seconds(const bench::Call& call) {
  double best = 1e9;
  for (int attempt = 0; attempt <= tries; ++attempt) {
    const double begin = thread_seconds();
    call.run();
    // The first call compiles GEMMs and meets untouched memory.
    if (attempt > 0) best = std::min(best, thread_seconds() - begin);
  }
  return best;
}

struct Phase {
  double seconds = 0;
  double operations = 0;
};

void print_line(const std::string& name, const Phase& phase, double whole, double peak) {
  auto line = base::format("{:<28} {:>9.1f} ms {:>5.1f} %", name, phase.seconds * 1e3,
                           100 * phase.seconds / whole);
  if (phase.operations > 0) {
    const double rate = phase.operations / phase.seconds;
    line += base::format("  {:>7.1f} GFLOP/s {:>3.0f} % of peak", rate * 1e-9, 100 * rate / peak);
  }
  std::cout << line << '\n';
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) {
    std::cerr << "usage: bench_step BATCH SEQ bf16|fp32\n";
    return 2;
  }
  const auto batch = std::atol(argv[1]);
  const auto seq = std::atol(argv[2]);
  const auto dtype = std::string(argv[3]) == "bf16" ? device::DType::bf16 : device::DType::f32;
  const auto kernels = device::make_cpu_kernels(1);
  // Pages are touched only as far as they are used.
  auto arena = device::Arena::host(device::Purpose::workspace, std::size_t{12} << 30);
  const auto peak = device::measured_peak(dtype, 1);
  std::map<std::string, Phase> phases;
  Phase whole;
  for (const auto& call : bench::step_calls(*kernels, arena, dtype, batch, seq)) {
    const double seconds = best_seconds(call) * call.times;
    for (auto* sum : {&phases[call.phase], &phases[call.phase + ": " + call.name], &whole}) {
      sum->seconds += seconds;
      sum->operations += call.operations * call.times;
    }
  }
  std::cout << base::format(
      "GPT-2 124M, {} x {} tokens, {}, one thread; peak {:.1f} GFLOP/s ({})\n", batch, seq, argv[3],
      peak.flops * 1e-9, peak.instructions);
  for (const auto& [name, phase] : phases) {
    print_line(name.find(':') == std::string::npos ? name : "  " + name, phase, whole.seconds,
               peak.flops);
  }
  print_line("all", whole, whole.seconds, peak.flops);
  std::cout << base::format("{:.0f} tokens a second\n",
                            static_cast<double>(batch * seq) / whole.seconds);
  return 0;
}
