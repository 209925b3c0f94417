// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/measure.hpp"

#include "trireme/device/pricing.hpp"
#include "trireme/ownership/price.hpp"

#include <array>
#include <memory>
#include <vector>

namespace trireme::engine {

using layout::Axis;

namespace {

/// Bytes that groups have moved, [axis].
using Moved = std::array<std::size_t, layout::axis_count>;

std::size_t& on(Moved& moved, Axis axis) {
  return moved[static_cast<std::size_t>(axis)];
}

/// Groups of a rank that pretend; `moved` grows by the bytes that they move. What hosts tell each
/// other goes over a group of all ranks, and is not counted.
class PretendedGroups {
 public:
  PretendedGroups(const layout::Mesh& mesh, base::Rank rank, Moved& moved)
      : axes_(comm::make_dry_run_groups(mesh, rank, comm::DryRunData::untouched,
                                        [&moved](const comm::AxisGroup& group) -> std::size_t* {
                                          return group.members == comm::Members::ends
                                                     ? nullptr
                                                     : &on(moved, group.axis);
                                        })),
        all_ranks_(comm::make_dry_run_group("world", mesh.group(layout::all_axes, rank),
                                            rank.value(), comm::DryRunData::untouched)) {}

  comm::AxisGroups views() const {
    auto views = axes_.views();
    views.set_all_ranks(*all_ranks_);
    return views;
  }

 private:
  comm::OwnedAxisGroups axes_;
  std::unique_ptr<comm::ProcessGroup> all_ranks_;
};

/// Runs a step and an evaluation over memory that only counts.
MemoryUse pretend(const EngineOptions& options, device::Kernels& kernels,
                  const Beside& beside = {}) {
  Moved moved{};
  const PretendedGroups groups(options.sharding.mesh, options.sharding.rank, moved);
  auto memory = Memory::measuring();
  Engine engine(options, groups.views(), kernels, memory);
  if (engine.trains()) {
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({.gradient_norm = reduced.gradient_norm});
  }
  engine.evaluate();
  if (engine.keeps_logits()) engine.logits();
  if (beside) beside(engine, groups.views(), kernels, memory);
  return memory.peak_bytes();
}

}  // namespace

MemoryUse measure(const EngineOptions& options, const Beside& beside) {
  return pretend(options, *device::make_measuring_kernels(), beside);
}

std::vector<device::GemmCall> gemm_calls_of(const EngineOptions& options) {
  std::vector<device::GemmCall> calls;
  pretend(options, *device::make_gemm_collecting_kernels(calls));
  return calls;
}

double predicted_seconds(EngineOptions options) {
  const auto machine =
      options.numerics.gpu_attention ? ownership::MachineSpeeds{} : ownership::speeds_of_cpus();
  options.schedule.micro_batches = options.sharding.mesh.degree(Axis::pipeline);
  Moved moved{};
  const PretendedGroups groups(options.sharding.mesh, options.sharding.rank, moved);
  auto memory = Memory::measuring();
  double seconds = 0;
  const auto kernels = device::make_pricing_kernels(
      {machine.product_flops, machine.memory_bytes, machine.launch_seconds}, seconds);
  Engine engine(options, groups.views(), *kernels, memory);
  seconds = 0;
  moved = {};
  engine.run_schedule();
  const auto bytes = on(moved, Axis::tensor) + on(moved, Axis::context);
  return seconds + static_cast<double>(bytes) / machine.node_bytes;
}

StepTraffic traffic_of(const EngineOptions& options) {
  Moved moved{};
  const PretendedGroups groups(options.sharding.mesh, options.sharding.rank, moved);
  auto memory = Memory::measuring();
  const auto kernels = device::make_measuring_kernels();
  Engine engine(options, groups.views(), *kernels, memory);
  const auto gathered = engine.run_schedule().gathered_bytes;
  // Partial terms of gradients are no activations: what follows counts for the gradients alone.
  StepTraffic traffic{.tensor = on(moved, Axis::tensor),
                      .context = on(moved, Axis::context),
                      .messages = on(moved, Axis::pipeline)};
  engine.reduce_gradients();
  traffic.gradients = on(moved, Axis::data) - gathered;
  return traffic;
}

}  // namespace trireme::engine
