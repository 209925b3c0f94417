// SPDX-License-Identifier: Apache-2.0
// Rates at which a rank computes.
#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/measure.hpp"

#include "apps/preflight/measure_machine.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <functional>
#include <limits>

namespace trireme::apps {
namespace {

using device::DType;
using device::GemmShape;
using predict::Machine;
using Clock = std::chrono::steady_clock;

constexpr int repeats = 5;
/// Time that the products of one precision may take.
constexpr double product_seconds = 5;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

float reduced(runtime::Cluster& cluster, double own, comm::ReduceOp op) {
  auto number = static_cast<float>(own);
  cluster.world->all_reduce({&number, DType::f32, {1}}, op);
  return number;
}

/// Rate of a GPU, the slowest; of the ranks of a node of cores together, the mean node's.
double whole_rate(runtime::Cluster& cluster, const Machine& machine, double own) {
  if (!machine.node.computes_on_cores()) {
    return 1 / static_cast<double>(reduced(cluster, 1 / own, comm::ReduceOp::max));
  }
  return static_cast<double>(reduced(cluster, own, comm::ReduceOp::sum)) /
         cluster.mpi->node_count();
}

std::string measured_on(const runtime::Cluster& cluster, std::string_view what) {
  return base::format("measured by trireme preflight on {}: {}",
                      base::counted(cluster.mpi->world_size(), "rank"), what);
}

/// Products of layers and heads, those of the least work first.
std::vector<GemmShape> layer_shapes(bool on_gpus) {
  const std::array<std::int64_t, 3> widths = on_gpus ? std::array<std::int64_t, 3>{1024, 4096, 8192}
                                                     : std::array<std::int64_t, 3>{64, 256, 1024};
  const std::array<std::int64_t, 3> heights = on_gpus
                                                  ? std::array<std::int64_t, 3>{1024, 4096, 16384}
                                                  : std::array<std::int64_t, 3>{64, 256, 1024};
  const std::int64_t vocabulary = on_gpus ? 32768 : 8192;
  std::vector<GemmShape> shapes;
  for (const auto rows : heights) {
    for (const auto hidden : widths) {
      shapes.push_back({rows, hidden, hidden});
      shapes.push_back({rows, hidden, 4 * hidden});
      shapes.push_back({rows, 4 * hidden, hidden});
      shapes.push_back({rows, hidden, vocabulary});
    }
  }
  std::stable_sort(shapes.begin(), shapes.end(), [](const auto& one, const auto& other) {
    return one.rows * one.in * one.out < other.rows * other.in * other.out;
  });
  return shapes;
}

/// The product of each pass as [m, k] times [k, n].
predict::MeasuredProduct product_of(const device::GemmTime& time) {
  const auto rows = static_cast<double>(time.shape.rows);
  const auto in = static_cast<double>(time.shape.in);
  const auto out = static_cast<double>(time.shape.out);
  switch (time.pass) {
    case device::LinearPass::forward:
      return {rows, out, in, 0};
    case device::LinearPass::backward_input:
      return {rows, in, out, 0};
    case device::LinearPass::backward_weight:
      return {out, in, rows, 0};
  }
  return {};
}

/// Passes of different products may have one shape: the slowest counts.
void add_rate(std::vector<predict::MeasuredProduct>& products,
              const predict::MeasuredProduct& product) {
  const auto there = std::find_if(products.begin(), products.end(), [&](const auto& each) {
    return each.m == product.m && each.n == product.n && each.k == product.k;
  });
  if (there == products.end()) {
    products.push_back(product);
  } else {
    there->rate = std::min(there->rate, product.rate);
  }
}

/// Rates by shape, until the time is over on some rank.
std::vector<predict::MeasuredProduct> product_rates(runtime::Cluster& cluster,
                                                    device::Kernels& kernels,
                                                    const Machine& machine, DType dtype) {
  std::vector<predict::MeasuredProduct> products;
  const auto begin = Clock::now();
  for (const auto& shape : layer_shapes(!machine.node.computes_on_cores())) {
    if (reduced(cluster, seconds_since(begin), comm::ReduceOp::max) > product_seconds) break;
    for (const auto& time : device::measure_gemms(kernels, dtype, shape, repeats)) {
      auto product = product_of(time);
      product.rate = whole_rate(cluster, machine, time.operations() / time.fastest_seconds);
      add_rate(products, product);
    }
  }
  return products;
}

void measure_peak(runtime::Cluster& cluster, Machine& machine, DType dtype, const char* key,
                  double& peak) {
  const auto own = device::measured_peak(dtype, cluster.binding.threads);
  peak = whole_rate(cluster, machine, own.flops);
  machine.sources[key] = measured_on(cluster, own.instructions + " on registers");
}

/// Seconds of work, the least of some repeats; the first one is not counted.
double fastest(device::Kernels& kernels, int times, const std::function<void()>& work) {
  double least = std::numeric_limits<double>::infinity();
  for (int repeat = -1; repeat < times; ++repeat) {
    kernels.synchronize();
    const auto begin = Clock::now();
    work();
    kernels.synchronize();
    if (repeat >= 0) least = std::min(least, seconds_since(begin));
  }
  return least;
}

/// Bytes a second of sums of two tensors that no cache holds.
double memory_rate(device::Kernels& kernels) {
  const std::int64_t elements = kernels.device().is_host() ? 8 << 20 : 64 << 20;
  constexpr std::int64_t tensors = 3;
  constexpr std::int64_t element_bytes = 4;
  auto arena = kernels.device().arena(device::Purpose::workspace,
                                      static_cast<std::size_t>(tensors * element_bytes * elements));
  const auto x = arena.allocate(DType::f32, {1, elements});
  const auto y = arena.allocate(DType::f32, {1, elements});
  const auto z = arena.allocate(DType::f32, {1, elements});
  for (const auto& each : {x, y, z}) kernels.issue(device::Fill{each, 1});
  const double seconds = fastest(kernels, repeats, [&] { kernels.issue(device::Add{x, y, z}); });
  return static_cast<double>(tensors * element_bytes * elements) / seconds;
}

/// Seconds of one operation of so few elements that only its start counts.
double launch_gap(device::Kernels& kernels) {
  constexpr int operations = 500;
  constexpr std::int64_t elements = 64;
  auto arena = kernels.device().arena(device::Purpose::workspace, 4096);
  const auto x = arena.allocate(DType::f32, {1, elements});
  const auto y = arena.allocate(DType::f32, {1, elements});
  kernels.issue(device::Fill{x, 1});
  const double seconds = fastest(kernels, repeats, [&] {
    for (int count = 0; count < operations; ++count) kernels.issue(device::Add{x, x, y});
  });
  return seconds / operations;
}

/// FLOP/s of causal attention, forward and backward.
double attention_rate(device::Kernels& kernels, DType dtype) {
  const std::int64_t rows = kernels.device().is_host() ? 256 : 4096;
  const std::int64_t heads = kernels.device().is_host() ? 4 : 16;
  constexpr std::int64_t width = 64;
  constexpr std::int64_t tensors = 8;
  const auto bytes = static_cast<std::size_t>(4 * (tensors * rows * width + rows) * heads) + 4096;
  auto arena = kernels.device().arena(device::Purpose::workspace, bytes);
  std::array<device::Tensor, tensors> all;
  std::uint64_t stream = 0;
  for (auto& each : all) {
    each = arena.allocate(dtype, {1, rows, heads, width});
    device::fill_random(kernels, each, ++stream, 1);
  }
  const device::Attention forward{.q = all[0],
                                  .k = all[1],
                                  .v = all[2],
                                  .out = all[3],
                                  .lse = arena.allocate(DType::f32, {1, heads, rows}),
                                  .scale = 0.125F};
  const device::AttentionBackward backward{forward, all[4], all[5], all[6], all[7]};
  const double seconds = fastest(kernels, repeats, [&] {
    kernels.issue(forward);
    kernels.issue(backward);
  });
  // Two products forward and five backward, of which the mask hides half.
  constexpr double products = 7;
  return products * static_cast<double>(rows * rows * heads * width) / seconds;
}

}  // namespace

Machine cores_machine(int cores) {
  Machine machine;
  auto& sources = machine.sources;
  machine.node.gpus = 0;
  sources["node.gpus"] = "assumed: ranks compute on cores";
  machine.node.cores = cores;
  machine.node.memory =
      static_cast<std::int64_t>(::sysconf(_SC_PHYS_PAGES)) * ::sysconf(_SC_PAGESIZE);
  sources["node.memory"] = "sysconf _SC_PHYS_PAGES";
  sources["share.product"] = "assumed: the rates of the table are measured";
  sources["share.memory"] = "assumed: the memory's rate is measured";
  sources["share.link"] = "assumed: messages are measured";
  constexpr double gigabit = 125e6;
  constexpr double of_tcp = 30e-6;
  machine.nics = 1;
  sources["link.network.nics"] = "assumed: one network interface";
  machine.network.rate = gigabit;
  sources["link.network.rate"] = "assumed: Gigabit Ethernet";
  machine.network.latency = of_tcp;
  sources["link.network.latency"] = "assumed: TCP";
  machine.network.hop = of_tcp;
  sources["link.network.hop"] = "assumed: TCP";
  sources["link.network.oversubscription"] = "assumed: one switch";
  return machine;
}

void measure_products(runtime::Cluster& cluster, device::Kernels& kernels, Machine& machine) {
  const auto source = measured_on(cluster, "the fastest of 5 products of each shape");
  cluster.world->barrier();
  if (machine.node.computes_on_cores()) {
    measure_peak(cluster, machine, DType::f32, "node.peak.fp32", machine.node.peak_fp32);
    measure_peak(cluster, machine, DType::bf16, "node.peak.bf16", machine.node.peak_bf16);
  }
  machine.products = product_rates(cluster, kernels, machine, DType::bf16);
  machine.sources["product.rates"] = source;
  machine.products_fp32 = product_rates(cluster, kernels, machine, DType::f32);
  machine.sources["product.rates_fp32"] = source;
  machine.share.product = 1;
  machine.sources["share.product"] = "assumed: the rates of the table are measured";
}

void measure_passes(runtime::Cluster& cluster, device::Kernels& kernels, Machine& machine) {
  auto& node = machine.node;
  auto& sources = machine.sources;
  cluster.world->barrier();
  node.memory_rate = whole_rate(cluster, machine, memory_rate(kernels));
  sources["node.memory_rate"] = measured_on(cluster, "sums of two large tensors");
  machine.share.memory = 1;
  sources["share.memory"] = "assumed: the memory's rate is measured";
  const auto dtype = node.computes_on_cores() ? DType::f32 : DType::bf16;
  const double peak = node.computes_on_cores() ? node.peak_fp32 : node.peak_bf16;
  // A share above this is refused by the reader: no machine is that much faster than its peak.
  constexpr double most_share = 10;
  machine.share.attention =
      std::min(most_share, whole_rate(cluster, machine, attention_rate(kernels, dtype)) / peak);
  sources["share.attention"] = measured_on(cluster, "causal attention and its backward");
  // Cores compute in the thread that issues.
  if (node.computes_on_cores()) return;
  node.launch_gap = reduced(cluster, launch_gap(kernels), comm::ReduceOp::max);
  sources["node.launch_gap"] = measured_on(cluster, "sums of 64 numbers");
}

}  // namespace trireme::apps
