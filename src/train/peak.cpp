#include "peak.hpp"

#include "trireme/device/arena.hpp"
#include "trireme/device/measure.hpp"

#include <algorithm>
#include <chrono>

namespace trireme::train {
namespace {

/// Large enough to leave the caches' edge effects behind (on a card, to fill it), small enough for
/// tens of milliseconds.
std::int64_t side_for(const device::Device& device) {
  return device.is_host() ? 768 : 4096;
}
/// The first product warms up. More than one other are measured while they are quick: where ranks
/// share cores they are not, and every start waits for the slowest rank.
constexpr int least_products = 2;
constexpr int most_products = 4;
constexpr std::chrono::milliseconds patience{25};

double measured_flops(device::Kernels& kernels, device::DType dtype) {
  const auto side = side_for(kernels.device());
  auto arena = kernels.device().arena(device::Purpose::workspace,
                                      3 * static_cast<std::size_t>(side * side) * sizeof(float));
  const auto x = arena.allocate(dtype, {side, side});
  const auto w = arena.allocate(dtype, {side, side});
  const auto y = arena.allocate(dtype, {side, side});
  // Numbers as training has them: on zeros or constants a card keeps a clock that it has nowhere
  // else.
  device::fill_random(kernels, x, 1, 1.0F);
  device::fill_random(kernels, w, 2, 0.02F);
  kernels.synchronize();
  double best = 0;
  const auto start = std::chrono::steady_clock::now();
  for (int product = 0; product < most_products; ++product) {
    const auto begin = std::chrono::steady_clock::now();
    if (product >= least_products && begin - start > patience) break;
    kernels.linear_forward(x, w, {}, y);
    kernels.synchronize();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
    const auto length = static_cast<double>(side);
    best = std::max(best, 2.0 * length * length * length / took.count());
  }
  return best;
}

}  // namespace

Peak find_peak(const config::Config& config, device::Kernels& kernels, device::DType dtype,
               comm::ProcessGroup& world) {
  const char* precision = dtype == device::DType::bf16 ? "bf16" : "fp32";
  if (!config.automatic("numerics.peak_flops")) {
    return {config.real("numerics.peak_flops") * world.size(), "numerics.peak_flops"};
  }
  world.barrier();
  auto flops = static_cast<float>(measured_flops(kernels, dtype));
  world.all_reduce(device::Tensor(&flops, device::DType::f32, {1}));
  return {static_cast<double>(flops), std::string(precision) + " product measured at start"};
}

}  // namespace trireme::train
