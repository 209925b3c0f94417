// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/engine.hpp"

#include <memory>
#include <vector>

namespace trireme::engine {

using layout::Axis;

namespace {

std::unique_ptr<comm::ProcessGroup> pretended(const char* name, const EngineOptions& options,
                                              Axis axis) {
  return comm::make_dry_run_group(name, options.mesh.group(axis, options.rank),
                                  options.mesh.coordinate(axis, options.rank),
                                  comm::DryRunData::untouched);
}

/// First and last stage of this rank's pipeline, if this is one of them.
std::unique_ptr<comm::ProcessGroup> pretended_embedding(const EngineOptions& options) {
  const auto stages = options.mesh.group(Axis::pipeline, options.rank);
  const int stage = options.mesh.coordinate(Axis::pipeline, options.rank);
  const int last = static_cast<int>(stages.size()) - 1;
  if (last == 0 || (stage != 0 && stage != last)) return nullptr;
  return comm::make_dry_run_group("embedding", {stages.front(), stages.back()}, stage == 0 ? 0 : 1,
                                  comm::DryRunData::untouched);
}

/// Runs a step and an evaluation over memory that only counts.
MemoryUse pretend(const EngineOptions& options, device::Kernels& kernels) {
  const auto tensor = pretended("tp", options, Axis::tensor);
  const auto pipeline = pretended("pp", options, Axis::pipeline);
  const auto data = pretended("dp", options, Axis::data);
  const auto embedding = pretended_embedding(options);
  auto memory = Memory::measuring();
  Engine engine(options, {tensor.get(), pipeline.get(), data.get(), embedding.get()}, kernels,
                memory);
  if (options.use == Use::training) {
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({.gradient_norm = reduced.gradient_norm});
  }
  engine.evaluate();
  if (options.keep_logits == KeepLogits::yes && engine.is_last_stage()) engine.logits();
  return memory.peak_bytes();
}

}  // namespace

MemoryUse measure(const EngineOptions& options) {
  return pretend(options, *device::make_measuring_kernels());
}

std::vector<device::GemmCall> gemm_calls_of(const EngineOptions& options) {
  std::vector<device::GemmCall> calls;
  pretend(options, *device::make_gemm_collecting_kernels(calls));
  return calls;
}

}  // namespace trireme::engine
