// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/engine.hpp"
#include "trireme/engine/measure.hpp"

#include "support/late_gathers.hpp"
#include "unit/engine/counting_kernels.hpp"

#include <cstdint>
#include <optional>
#include <vector>

namespace trireme::testing {

enum class Gathers { at_once, late };

/// An engine over groups whose peers are pretended.
class PretendedEngine {
 public:
  explicit PretendedEngine(const engine::EngineOptions& options, Gathers gathers = Gathers::late)
      : groups_(comm::make_dry_run_groups(options.sharding.mesh, options.sharding.rank,
                                          comm::DryRunData::mirrored)),
        late_(groups_.on(layout::Axis::data), log),
        memory_(engine::Memory::host(engine::measure(options))) {
    log.now = [this] { return kernels.issued; };
    auto views = groups_.views();
    if (gathers == Gathers::late) views.set(layout::Axis::data, late_);
    engine.emplace(options, views, kernels, memory_);
    engine->initialise();
    log.events.clear();
  }

  void fill() {
    const auto& options = engine->options();
    for (int index = 0; index < options.schedule.micro_batches; ++index) {
      auto& batch = engine->batch(index);
      const auto rows = options.schedule.micro_batch * options.schedule.sequence_length;
      for (std::int64_t at = 0; at < rows; ++at) {
        batch.tokens.i32()[at] = static_cast<std::int32_t>((7 * at + index) % 97);
        batch.targets.i32()[at] = static_cast<std::int32_t>((7 * at + index + 7) % 97);
      }
    }
  }
  void schedule() {
    fill();
    engine->run_schedule();
    const auto reduced = engine->reduce_gradients();
    observed.push_back(reduced.loss);
    observed.push_back(reduced.gradient_norm);
  }
  void update() {
    ++step_;
    engine->update({.step = step_, .learning_rate = 1e-2, .gradient_norm = observed.back()});
  }
  /// A whole one; its loss.
  double step() {
    schedule();
    update();
    return observed[observed.size() - 2];
  }

  GatherLog log;
  CountingKernels kernels;
  /// Losses and norms.
  std::vector<double> observed;

 private:
  comm::OwnedAxisGroups groups_;
  LateGathers late_;
  engine::Memory memory_;
  std::int64_t step_ = 0;

 public:
  std::optional<engine::Engine> engine;
};

}  // namespace trireme::testing
