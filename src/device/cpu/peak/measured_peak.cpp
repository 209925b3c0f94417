// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/measure.hpp"

#include "device/cpu/peak/peak.hpp"
#include "device/cpu/runtime/isa.hpp"
#include "device/cpu/runtime/parallel.hpp"

#include <sys/syscall.h>
#include <unistd.h>

#include <chrono>
#include <vector>

namespace trireme::device {
namespace {

struct Candidate {
  const char* instructions;
  std::int64_t (*run)(std::int64_t rounds);
};

/// Asks the kernel for the tiles of AMX, which it hands out on demand.
bool amx_granted() {
  constexpr long request_permission = 0x1023;  // ARCH_REQ_XCOMP_PERM
  constexpr long tile_data = 18;               // XFEATURE_XTILEDATA
  return __builtin_cpu_supports("amx-bf16") != 0 &&
         ::syscall(SYS_arch_prctl, request_permission, tile_data) == 0;
}

std::vector<Candidate> candidates(DType dtype) {
  std::vector<Candidate> list;
  if (dtype == DType::bf16) {
    if (amx_granted()) list.push_back({"AMX-BF16", cpu::tile_rounds_amx});
    if (cpu::runs(cpu::Isa::avx512_bf16)) {
      list.push_back({"AVX512-BF16", cpu::dot_rounds_avx512_bf16});
    }
  }
  if (cpu::runs(cpu::Isa::avx512)) {
    list.push_back({"AVX-512 FMA", cpu::fma_rounds_avx512});
  } else if (cpu::runs(cpu::Isa::avx2)) {
    list.push_back({"AVX2 FMA", cpu::fma_rounds_avx2});
  }
  return list;
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Each thread counts from its own start to its own end: threads that start late do not matter,
/// threads that disturb each other do.
double rate_of(const Candidate& candidate, int threads) {
  constexpr std::int64_t rounds = 100'000;
  constexpr SettledRate::Patience patience{std::chrono::milliseconds(30),
                                           std::chrono::milliseconds(500)};
  using Clock = SettledRate::Clock;
  cpu::Team team(threads);
  SettledRate settled(patience, Clock::now());
  while (settled.goes_on(Clock::now())) {
    std::vector<double> rates(static_cast<std::size_t>(threads));
    cpu::parallel(team, threads, [&](int thread) {
      const double begin = now();
      const auto operations = static_cast<double>(candidate.run(rounds));
      rates[static_cast<std::size_t>(thread)] = operations / (now() - begin);
    });
    double total = 0;
    for (const double rate : rates) total += rate;
    settled.add(total, Clock::now());
  }
  return settled.best();
}

}  // namespace

PeakRate measured_peak(DType dtype, int threads) {
  PeakRate peak;
  for (const auto& candidate : candidates(dtype)) {
    const double flops = rate_of(candidate, threads);
    if (flops > peak.flops) peak = {flops, candidate.instructions};
  }
  TRIREME_ENSURE(peak.flops > 0, "this CPU has no AVX2");
  return peak;
}

}  // namespace trireme::device
