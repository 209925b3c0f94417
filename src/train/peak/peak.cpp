// SPDX-License-Identifier: Apache-2.0
#include "train/peak/peak.hpp"

#include "trireme/base/format.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/data_sheet.hpp"
#include "trireme/device/measure.hpp"

#include "train/peak/kept_peak.hpp"

#include <chrono>

namespace trireme::train {
namespace {

using std::chrono::milliseconds;

/// Parameters of the search for the fastest GEMM. A side is large enough to make the caches' edge
/// effects negligible (on a GPU, to fill it).
struct Search {
  std::int64_t side = 0;
  /// Number of GEMMs that are timed together, so that a GPU's launches are negligible.
  int gemms_together = 1;
  device::SettledRate::Patience patience;
};
/// Kept for later starts, which wait for none of it.
constexpr Search on_host{768, 1, {milliseconds(60), milliseconds(400)}};
/// A GPU that has just left its idle clocks takes some milliseconds to reach its working clocks.
constexpr Search on_gpu{4096, 4, {milliseconds(20), milliseconds(100)}};

std::string flops_rate_text(double flops) {
  constexpr double tera = 1e12;
  return flops >= 1e3 * tera ? base::format("{:.2f} PFLOP/s", flops / (1e3 * tera))
                             : base::format("{:.{}f} TFLOP/s", flops / tera, flops < tera ? 3 : 1);
}

const char* precision_of(device::DType dtype) {
  return dtype == device::DType::bf16 ? "bf16" : "fp32";
}

/// FLOP/s in the data sheet of this rank's GPU; 0 where none is known.
double promised(const std::string& gpu, device::DType dtype) {
  return gpu.empty() ? 0 : device::data_sheet_flops(gpu, dtype).value_or(0);
}

}  // namespace

double fastest_gemm(device::Kernels& kernels, device::DType dtype) {
  const auto& search = kernels.device().is_host() ? on_host : on_gpu;
  const auto side = search.side;
  auto arena = kernels.device().arena(device::Purpose::workspace,
                                      3 * static_cast<std::size_t>(side * side) * sizeof(float));
  const auto x = arena.allocate(dtype, {side, side});
  const auto w = arena.allocate(dtype, {side, side});
  const auto y = arena.allocate(dtype, {side, side});
  // Realistic values: on zeros or constants a GPU keeps a higher clock than in training.
  device::fill_random(kernels, x, 1, 1.0F);
  device::fill_random(kernels, w, 2, 0.02F);
  kernels.synchronize();
  // Clock of the device: the host's would count launches and the wait for their end.
  const auto watch = kernels.device().stopwatch();
  using SettleClock = device::SettledRate::Clock;
  device::SettledRate settled(search.patience, SettleClock::now());
  while (settled.goes_on(SettleClock::now())) {
    watch->start();
    for (int each = 0; each < search.gemms_together; ++each) {
      kernels.issue(device::LinearForward{.x = x, .w = w, .y = y});
    }
    watch->stop();
    kernels.synchronize();
    const auto length = static_cast<double>(side);
    const double flops = 2.0 * length * length * length * search.gemms_together;
    settled.add(flops / watch->take(), SettleClock::now());
  }
  return settled.best();
}

double fastest_gemms(device::Kernels& kernels, device::DType dtype, comm::ProcessGroup& world) {
  world.barrier();
  auto flops = static_cast<float>(fastest_gemm(kernels, dtype));
  world.all_reduce(device::Tensor(&flops, device::DType::f32, {1}));
  return flops;
}

std::string Peak::text() const {
  auto text = base::format("MFU divides by {} ({})", flops_rate_text(flops), source);
  if (kind == Kind::data_sheet) {
    text += base::format("; the fastest products of all ranks at start reach {} ({:.0f} %)",
                         flops_rate_text(gemm_flops), 100 * gemm_flops / flops);
  }
  return text;
}

Peak find_peak(const config::Config& config, device::Kernels& kernels, const PeakSubject& subject,
               KeptPeak& kept, comm::ProcessGroup& world) {
  if (const auto& given = config.options().numerics.peak_flops) {
    return {Peak::Kind::given, *given * world.size(), "numerics.peak_flops", 0};
  }
  // Without a GPU there is no name.
  const auto named = device::gpu_name(subject.gpu_bus_id);
  const std::string gpu = named.ok() ? *named : "";
  // Ranks may have GPUs of several kinds; one without a known peak leaves no sum.
  const double own = promised(gpu, subject.dtype);
  float sums[] = {static_cast<float>(own), own > 0 ? 0.0F : 1.0F};
  world.all_reduce(device::Tensor(sums, device::DType::f32, {2}));
  const auto* const precision = precision_of(subject.dtype);
  if (sums[1] == 0) {
    return {Peak::Kind::data_sheet, sums[0],
            base::format("data sheet of {}, dense {}", gpu, precision),
            fastest_gemms(kernels, subject.dtype, world)};
  }
  kept.look_up(base::format("{}; {}; {} {}", subject.rank, gpu, kernels.name(), precision), world);
  if (const auto flops = kept.flops()) {
    return {Peak::Kind::measured, *flops,
            base::format("the fastest {} products of all ranks, as an earlier start measured them",
                         precision),
            0};
  }
  const double gemm = fastest_gemms(kernels, subject.dtype, world);
  kept.raise(gemm, gemm);
  return {Peak::Kind::measured, gemm,
          base::format("the fastest {} products of all ranks, measured at this start", precision),
          gemm};
}

}  // namespace trireme::train
