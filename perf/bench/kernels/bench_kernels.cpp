// SPDX-License-Identifier: Apache-2.0
// bench_kernels: how near each bandwidth-bound kernel of the cpu backend comes to copying; with
// --backend cuda the same on a GPU (gpu_kernels.hpp).
//
// Every kernel runs in turn with a copy of as many bytes, so that both meet the same neighbours
// on a shared machine; the best time of each counts. 100 % means: as fast as reading half of the
// bytes and writing the other half with no arithmetic at all.

#include "trireme/base/format.hpp"

#include "device/cpu/cpu_kernels.hpp"
#include "gpu_kernels.hpp"
#include "kernel_work.hpp"

#include <chrono>
#include <cstdlib>
#include <iostream>
#include <string>

namespace {

using namespace trireme;

struct Options {
  int threads = 2;
  int calls = 100;
  device::cpu::Isa isa = device::cpu::best_isa();
  std::string only;
  bool on_gpu = false;
};

constexpr const char* usage =
    "usage: bench_kernels [--threads N] [--calls N] [--isa avx2|avx512|avx512_bf16] [--only "
    "TEXT]\n       bench_kernels --backend cuda [--only TEXT]\n";

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string key = argv[i];
    const std::string value = argv[i + 1];
    if (key == "--threads") options.threads = std::stoi(value);
    if (key == "--calls") options.calls = std::stoi(value);
    if (key == "--only") options.only = value;
    if (key == "--backend") options.on_gpu = value == "cuda";
    if (key == "--isa") {
      for (const auto isa : device::cpu::all_isas) {
        if (value == device::cpu::name(isa)) options.isa = isa;
      }
    }
  }
  if (argc % 2 == 0) {
    std::cerr << usage;
    std::exit(2);
  }
  return options;
}

template <typename Work>
double seconds_of(const Work& work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

/// Copies of any size between two large arrays.
class Copier {
 public:
  Copier(device::Kernels& kernels, bench::Memory& memory, std::int64_t bytes)
      : kernels_(kernels),
        from_(memory.arena.allocate(device::DType::f32, {bytes / 4})),
        to_(memory.arena.allocate(device::DType::f32, {bytes / 4})) {
    kernels.issue(device::Fill{from_, 1.0F});
    kernels.issue(device::Fill{to_, 2.0F});
  }
  /// Reads half of `bytes` and writes the other half, in pieces if need be.
  void copy(std::int64_t bytes) {
    for (auto left = bytes / 8; left > 0;) {
      const auto piece = std::min(left, from_.dim(0));
      if (next_ + piece > from_.dim(0)) next_ = 0;
      kernels_.issue(device::Copy{from_.slice(0, next_, piece), to_.slice(0, next_, piece)});
      next_ += piece;
      left -= piece;
    }
  }

 private:
  device::Kernels& kernels_;
  device::Tensor from_;
  device::Tensor to_;
  std::int64_t next_ = 0;
};

void measure(const bench::KernelWork& work, Copier& copier, const Options& options) {
  if (work.name.find(options.only) == std::string::npos) return;
  double kernel_seconds = 1e9;
  double copy_seconds = 1e9;
  for (int call = 0; call < options.calls; ++call) {
    copy_seconds = std::min(copy_seconds, seconds_of([&] { copier.copy(work.bytes); }));
    kernel_seconds = std::min(kernel_seconds, seconds_of([&] { work.run(call); }));
  }
  const auto bytes = static_cast<double>(work.bytes);
  std::cout << base::format("{:<32} {:<5} {:>9.3f} {:>8.1f} {:>8.1f} {:>7.0f} %\n", work.name,
                            device::name(work.dtype), kernel_seconds * 1e3,
                            bytes / kernel_seconds * 1e-9, bytes / copy_seconds * 1e-9,
                            100 * copy_seconds / kernel_seconds)
            << std::flush;
}

}  // namespace

int main(int argc, char** argv) {
  const auto options = parse(argc, argv);
  if (options.on_gpu) return bench::measure_on_gpu(options.only);
  const auto kernels = device::cpu::make_kernels(options.threads, options.isa);
  const bench::Shapes shapes;
  constexpr std::int64_t footprint = std::int64_t{256} << 20;
  bench::Memory memory{device::Arena::host(device::Purpose::workspace, std::size_t{4} << 30),
                       footprint};
  Copier copier(*kernels, memory, footprint);
  std::cout << base::format("{} threads, {}; best of {} calls, each beside a copy\n",
                            options.threads, device::cpu::name(options.isa), options.calls)
            << "kernel                           type         ms     GB/s     copy    share\n";
  using Maker = decltype(&bench::activation_work);
  for (const Maker make : {&bench::activation_work, &bench::logit_work, &bench::parameter_work}) {
    for (const auto dtype : {device::DType::f32, device::DType::bf16}) {
      const device::ArenaScope scope(memory.arena);
      for (const auto& work : make(*kernels, memory, dtype, shapes)) {
        measure(work, copier, options);
      }
    }
  }
  return 0;
}
