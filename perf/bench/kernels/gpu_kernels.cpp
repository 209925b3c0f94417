// SPDX-License-Identifier: Apache-2.0
#include "gpu_kernels.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"

#include "gpu_copy.hpp"
#include "gpu_sizes.hpp"
#include "kernel_work.hpp"

#include <algorithm>
#include <chrono>
#include <iostream>
#include <map>

namespace trireme::bench {
namespace {

using device::DType;
using device::Kernels;

constexpr int skipped = 77;

/// The fastest of several rounds, of at most so many calls. A round is long enough that the host's
/// calls, which run ahead of the GPU, and the wait at its end do not count, and no longer.
double seconds_of(Kernels& kernels, const std::function<void(std::int64_t)>& run, int most_calls) {
  constexpr int rounds = 5;
  constexpr int least_calls = 3;
  constexpr double long_enough = 0.1;
  const auto seconds_of_round = [&](int calls) {
    kernels.synchronize();
    const auto begin = std::chrono::steady_clock::now();
    for (int call = 0; call < calls; ++call) run(call);
    kernels.synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    return took.count() / calls;
  };
  // The first call chooses algorithms and wakes the GPU; the second says how many make a round.
  seconds_of_round(1);
  const double once = seconds_of_round(1);
  const int calls =
      std::max(least_calls, static_cast<int>(std::min<double>(most_calls, long_enough / once)));
  double best = 1e9;
  for (int round = 0; round < rounds; ++round) best = std::min(best, seconds_of_round(calls));
  return best;
}

void write(base::Json line) {
  // Flushed: whoever reads them has them when a later kernel fails.
  std::cout << base::json_text(line) << '\n' << std::flush;
}

class Gpu {
 public:
  /// `own` computes attention by own kernels; null where `kernels` does.
  Gpu(Kernels& kernels, Kernels* own)
      : kernels_(kernels),
        own_(own),
        memory_{kernels.device().arena(device::Purpose::workspace, sizes_.arena_bytes),
                sizes_.footprint_bytes} {}

  void measure_ceilings() {
    copy_rate_ = gpu_copy_rate(sizes_.copied_bytes);
    write({{"ceiling", "copy"}, {"bytes_per_second", copy_rate_}});
    for (const auto dtype : {DType::bf16, DType::f32}) {
      const device::ArenaScope scope(memory_.arena);
      const auto side = dtype == DType::bf16 ? sizes_.gemm_side : sizes_.gemm_side / 2;
      const auto x = memory_.arena.allocate(dtype, {side, side});
      const auto w = memory_.arena.allocate(dtype, {side, side});
      const auto y = memory_.arena.allocate(dtype, {side, side});
      set_random(kernels_, x, 1);
      set_random(kernels_, w, 2);
      const auto seconds = seconds_of(
          kernels_,
          [&](auto) {
            kernels_.issue(device::LinearForward{x, w, {}, y});
          },
          10);
      const auto length = static_cast<double>(side);
      gemm_rate_[dtype] = 2 * length * length * length / seconds;
      write({{"ceiling", "product"},
             {"type", device::name(dtype)},
             {"side", side},
             {"flops_per_second", gemm_rate_[dtype]}});
    }
  }

  void measure(const KernelWork& work) {
    const auto seconds =
        seconds_of(work.kernels == nullptr ? kernels_ : *work.kernels, work.run, sizes_.calls);
    base::Json line{
        {"kernel", work.name}, {"type", device::name(work.dtype)}, {"seconds", seconds}};
    if (work.bytes > 0) {
      const auto rate = static_cast<double>(work.bytes) / seconds;
      line["bytes"] = work.bytes;
      line["bytes_per_second"] = rate;
      line["share"] = rate / copy_rate_;
    } else {
      line["flops"] = work.operations;
      line["flops_per_second"] = work.operations / seconds;
      line["share"] = work.operations / seconds / gemm_rate_[work.dtype];
    }
    write(std::move(line));
  }

  void measure_kernels(const std::string& only) {
    const auto& shapes = sizes_.shapes;
    const std::vector<std::function<std::vector<KernelWork>(DType)>> makers{
        [&](DType dtype) { return activation_work(kernels_, memory_, dtype, shapes); },
        [&](DType dtype) { return logit_work(kernels_, memory_, dtype, shapes); },
        [&](DType dtype) { return parameter_work(kernels_, memory_, dtype, shapes); },
        [&](DType dtype) { return quantise_work(kernels_, memory_, dtype, shapes); },
        [&](DType dtype) { return attention_work(kernels_, memory_, dtype, sizes_.attention, ""); },
        [&](DType dtype) { return own_attention(dtype); }};
    for (const auto dtype : {DType::bf16, DType::f32}) {
      for (const auto& make : makers) {
        const device::ArenaScope scope(memory_.arena);
        for (const auto& work : make(dtype)) {
          if (work.name.find(only) != std::string::npos) measure(work);
        }
      }
    }
  }

  /// Last: a GPU that cannot multiply FP8 says so here.
  void measure_fp8_gemm(const std::string& only) {
    const device::ArenaScope scope(memory_.arena);
    const auto work = fp8_gemm_work(kernels_, memory_, sizes_.gemm_side);
    if (work.name.find(only) == std::string::npos) return;
    try {
      measure(work);
    } catch (const base::Error& error) {
      std::cerr << work.name << ": " << error.what() << '\n';
    }
  }

  /// Beside cuDNN's, where that serves: own kernels, on the same tensors.
  std::vector<KernelWork> own_attention(DType dtype) {
    if (!own_ || dtype != DType::bf16) return {};
    return attention_work(*own_, memory_, dtype, sizes_.attention, "own ");
  }

 private:
  Kernels& kernels_;
  Kernels* own_;
  const GpuSizes sizes_ = gpu_sizes();
  Memory memory_;
  double copy_rate_ = 0;
  std::map<DType, double> gemm_rate_;
};

}  // namespace

int measure_on_gpu(const std::string& only) {
  const auto kernels = device::make_cuda_kernels(0);
  if (!kernels.ok()) {
    std::cout << "TRIREME_SKIP: " << kernels.failure().text << '\n';
    return skipped;
  }
  const auto own = device::make_cuda_kernels(0, {.by = device::AttentionBy::own});
  const auto libraries = kernels.value()->libraries();
  write({{"libraries", libraries}});
  const bool apart = libraries.find("cuDNN") != std::string::npos &&
                     libraries.find("own kernels") == std::string::npos;
  Gpu gpu(*kernels.value(), apart && own.ok() ? own.value().get() : nullptr);
  gpu.measure_ceilings();
  gpu.measure_kernels(only);
  gpu.measure_fp8_gemm(only);
  return 0;
}

}  // namespace trireme::bench
