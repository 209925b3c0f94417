// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

/// Comparisons of the rows of the table of layouts.
namespace trireme::testing {

inline constexpr int long_run = 20;
/// Bits that differ at all differ soon.
inline constexpr int short_run = 5;
/// Shampoo's factors are in fp32, and roots of their small eigenvalues with them.
inline double tolerance(optim::RuleKind rule) {
  return rule == optim::RuleKind::shampoo ? 5e-5 : 1e-5;
}
/// Tolerance of all parameters after a run, as one vector. Rules with factors of a gradient's sides
/// turn directions that losses do not depend on by what rounding leaves there.
inline double parameter_tolerance(optim::RuleKind rule) {
  return optim::traits(rule).has_owner_states ? 1e-3 : 1e-4;
}

struct Variant {
  const char* name = "1f1b";
  layout::ScheduleKind schedule = layout::ScheduleKind::one_forward_one_backward;
  model::SequenceParallel sequence = model::SequenceParallel::off;
  int zero_level = 0;
  layers::Recompute recompute = layers::Recompute{};
  float dropout = 0.0F;
  std::vector<int> stage_layers = {};
  optim::RuleKind rule = optim::RuleKind::adamw;
  std::int64_t loss_rows = 1024;
};

/// The whole batch is 24 sequences of 12 tokens, whatever the mesh.
inline engine::EngineOptions options_for(model::Architecture architecture, const layout::Mesh& mesh,
                                         const Variant& variant) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.model.dropout = variant.dropout;
  options.sharding.mesh = mesh;
  options.sharding.rank = base::Rank{mesh.world_size() == 1 ? 0 : mpi().world_rank().value()};
  options.schedule.kind = variant.schedule;
  if (layout::has_virtual_stages(variant.schedule)) options.schedule.virtual_stages = 2;
  const int data = mesh.degree(layout::Axis::data);
  options.schedule.micro_batch = data == 8 ? 1 : 2;
  options.schedule.micro_batches = 24 / static_cast<int>(options.schedule.micro_batch) / data;
  options.schedule.sequence_length = 12;
  options.sharding.sequence_parallel = variant.sequence;
  options.sharding.zero_level = variant.zero_level;
  options.schedule.stage_layers = variant.stage_layers;
  options.memory.recompute = variant.recompute;
  options.memory.loss_rows = variant.loss_rows;
  options.sharding.rule.kind = variant.rule;
  options.sharding.rule.factors.root_every = 2;
  options.sharding.bucket_bytes = 64 << 10;
  options.numerics.clip_norm = 1.0;
  options.numerics.seed = 7;
  return options;
}

/// Trains one mesh in its variants, compares and prints.
class Comparison {
 public:
  Comparison(model::Architecture architecture, const layout::Mesh& mesh, device::Kernels& kernels)
      : architecture_(architecture),
        mesh_(mesh),
        kernels_(kernels),
        groups_(staged(mpi_groups(mesh), kernels.device())) {}

  TrainedRun run_whole(const Variant& variant, int steps) {
    still_going(mesh_.text() + " " + variant.name);
    return run_training(options_for(architecture_, mesh_, variant), groups_.views(), kernels_,
                        steps);
  }
  std::vector<Observed> run(const Variant& variant, int steps) {
    return run_whole(variant, steps).observed;
  }
  void must_end_close(const Variant& variant, const TrainedRun& run,
                      const TrainedRun& serial) const {
    must_be_close(variant, run.observed, serial.observed);
    const auto away = parameter_distance(run, serial);
    const auto most = parameter_tolerance(variant.rule);
    print(variant.name, away, base::format("parameters <= {:.0e}", most).c_str());
    CHECK(away <= most);
  }
  void must_be_close(const Variant& variant, const std::vector<Observed>& observed,
                     const std::vector<Observed>& serial) const {
    const auto most = tolerance(variant.rule);
    print(variant.name, distance(observed, serial),
          base::format("<= {:.0e} of serial", most).c_str());
    CHECK(distance(observed, serial) <= most);
  }
  void must_be_same(const Variant& variant, const std::vector<Observed>& expected) {
    auto observed = run(variant, short_run);
    const std::vector<Observed> begin(expected.begin(), expected.begin() + short_run);
    print(variant.name, distance(observed, begin), "bitwise");
    CHECK(observed == begin);
  }
  void print(const char* variant, double away, const char* demanded) const {
    if (mpi().world_rank().value() != 0) return;
    std::printf("%-6s %-18s %-22s %10.2e  %s\n", model::name(architecture_), mesh_.text().c_str(),
                variant, away, demanded);
    std::fflush(stdout);
  }

 private:
  model::Architecture architecture_;
  layout::Mesh mesh_;
  device::Kernels& kernels_;
  comm::OwnedAxisGroups groups_;
};

}  // namespace trireme::testing
