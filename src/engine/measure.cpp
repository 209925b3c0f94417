// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/engine.hpp"

#include <memory>
#include <vector>

namespace trireme::engine {

using layout::Axis;

namespace {

/// Groups of a rank that pretend, and bytes that they have moved.
class PretendedGroups {
 public:
  explicit PretendedGroups(const EngineOptions& options)
      : tensor_(pretended("tp", options, Axis::tensor, moved_.tensor)),
        pipeline_(pretended("pp", options, Axis::pipeline, moved_.messages)),
        data_(pretended("dp", options, Axis::data, moved_.gradients)),
        embedding_(pretended_embedding(options)) {}
  PretendedGroups(const PretendedGroups&) = delete;
  PretendedGroups& operator=(const PretendedGroups&) = delete;

  Groups views() const { return {tensor_.get(), pipeline_.get(), data_.get(), embedding_.get()}; }
  const StepTraffic& moved() const { return moved_; }

 private:
  static std::unique_ptr<comm::ProcessGroup> pretended(const char* name,
                                                       const EngineOptions& options, Axis axis,
                                                       std::size_t& moved) {
    return comm::make_dry_run_group(name, options.mesh.group(axis, options.rank),
                                    options.mesh.coordinate(axis, options.rank),
                                    comm::DryRunData::untouched, &moved);
  }

  /// First and last stage of this rank's pipeline, if this is one of them.
  static std::unique_ptr<comm::ProcessGroup> pretended_embedding(const EngineOptions& options) {
    const auto stages = options.mesh.group(Axis::pipeline, options.rank);
    const int stage = options.mesh.coordinate(Axis::pipeline, options.rank);
    const int last = static_cast<int>(stages.size()) - 1;
    if (last == 0 || (stage != 0 && stage != last)) return nullptr;
    return comm::make_dry_run_group("embedding", {stages.front(), stages.back()},
                                    stage == 0 ? 0 : 1, comm::DryRunData::untouched);
  }

  StepTraffic moved_;
  std::unique_ptr<comm::ProcessGroup> tensor_;
  std::unique_ptr<comm::ProcessGroup> pipeline_;
  std::unique_ptr<comm::ProcessGroup> data_;
  std::unique_ptr<comm::ProcessGroup> embedding_;
};

/// Runs a step and an evaluation over memory that only counts.
MemoryUse pretend(const EngineOptions& options, device::Kernels& kernels,
                  const Beside& beside = {}) {
  const PretendedGroups groups(options);
  auto memory = Memory::measuring();
  Engine engine(options, groups.views(), kernels, memory);
  if (options.use == Use::training) {
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({.gradient_norm = reduced.gradient_norm});
  }
  engine.evaluate();
  if (options.keep_logits == KeepLogits::yes && engine.is_last_stage()) engine.logits();
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

StepTraffic traffic_of(const EngineOptions& options) {
  const PretendedGroups groups(options);
  auto memory = Memory::measuring();
  const auto kernels = device::make_measuring_kernels();
  Engine engine(options, groups.views(), *kernels, memory);
  engine.run_schedule();
  // Partial terms of gradients are no activations: what follows counts for the gradients alone.
  auto traffic = groups.moved();
  engine.reduce_gradients();
  traffic.gradients = groups.moved().gradients;
  return traffic;
}

}  // namespace trireme::engine
