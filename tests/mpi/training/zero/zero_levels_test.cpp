// SPDX-License-Identifier: Apache-2.0
// ZeRO levels differ in who keeps what, never in a bit: level 3, whose ranks hold shards of
// parameters alone, trains and evaluates as level 0 does, over gathers that come as late as they
// may. Level 2 alone adds in another order, over ranks in each micro-batch.
#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/late_gathers.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using layers::Activation;
using layers::Recompute;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;

namespace {

constexpr int steps = 3;

/// Bits of a rank's elements that `others` has, too.
bool has_bits_of(const std::vector<ParameterCopy>& all, const std::vector<ParameterCopy>& others) {
  std::map<std::string, std::map<std::size_t, float>> values;
  for (const auto& copy : all) {
    each_element(copy, [&](float value, std::size_t at) { values[copy.name][at] = value; });
  }
  bool same = true;
  std::size_t seen = 0;
  for (const auto& copy : others) {
    const auto& expected = values[copy.name];
    each_element(copy, [&](float value, std::size_t at) {
      const auto found = expected.find(at);
      same =
          same && found != expected.end() && std::memcmp(&found->second, &value, sizeof value) == 0;
      ++seen;
    });
  }
  return same && seen > 0;
}

/// One stage with a tied table adds the embedding's and the head's gradients micro-batch by
/// micro-batch at level 0, and one's behind the other's where each unit takes all micro-batches
/// before the next.
bool adds_alike(const engine::EngineOptions& options) {
  return !options.model.tie_word_embeddings || options.schedule.micro_batches == 1 ||
         options.sharding.mesh.degree(Axis::pipeline) > 1;
}

/// Trains at level 0, and at level 3 over gathers that are there when they have been waited for.
void compare_levels(engine::EngineOptions options) {
  still_going(options.sharding.mesh.text());
  const auto groups = mpi_groups(options.sharding.mesh);
  const auto kernels = device::make_reference_kernels();
  options.sharding.zero_level = 0;
  const auto expected = run_training(options, groups.views(), *kernels, steps);
  options.sharding.zero_level = 3;
  GatherLog log;
  LateGathers late(groups.on(Axis::data), log);
  auto views = groups.views();
  views.set(Axis::data, late);
  const auto found = run_training(options, views, *kernels, steps);
  if (adds_alike(options)) {
    CHECK(found.observed == expected.observed);
    CHECK(has_bits_of(expected.parameters, found.parameters));
  } else {
    CHECK(distance(found.observed, expected.observed) <= 1e-5);
  }
  CHECK(log.pending == 0);
  CHECK_FALSE(log.events.empty());
}

template <typename Act>
void each_mesh(Architecture architecture, const Act& act) {
  for (const auto& mesh : meshes_of(mpi().world_size(), architecture)) {
    if (mesh.degree(Axis::data) == 1) continue;
    CAPTURE(model::name(architecture), mesh.text());
    act(mesh);
  }
}

}  // namespace

TEST_CASE("level 3 trains the three families as level 0 does, bit by bit") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    each_mesh(architecture, [&](const layout::Mesh& mesh) {
      auto options = tiny_options(architecture, mesh, 12);
      compare_levels(options);
      options.schedule.micro_batches = 1;
      compare_levels(options);
      options.schedule.micro_batches = options.model.tie_word_embeddings ? 1 : 3;
      options.numerics.dtype = device::DType::bf16;
      options.memory.recompute = Recompute{Activation::layer};
      if (mesh.degree(Axis::tensor) > 1) {
        options.sharding.sequence_parallel = model::SequenceParallel::on;
      }
      compare_levels(options);
    });
  }
}

TEST_CASE("level 2 trains as level 0 does, but for the order in which it adds micro-batches") {
  for (const auto architecture : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    each_mesh(architecture, [&](const layout::Mesh& mesh) {
      still_going(mesh.text());
      const int stages = mesh.degree(Axis::pipeline);
      auto options = tiny_options(architecture, mesh, 12);
      options.model.vocab_size = 1000;
      if (mesh.degree(Axis::tensor) > 1) {
        options.sharding.sequence_parallel = model::SequenceParallel::on;
      }
      const auto groups = mpi_groups(mesh);
      const auto kernels = device::make_reference_kernels();
      const auto run = [&](int level) {
        options.sharding.zero_level = level;
        return run_training(options, groups.views(), *kernels, steps);
      };
      for (const auto kind : {ScheduleKind::one_forward_one_backward, ScheduleKind::gpipe}) {
        options.schedule.kind = kind;
        options.schedule.micro_batches = 2 * stages;
        const auto found = run(2).observed;
        CHECK(distance(found, run(0).observed) <= 1e-6);
        if (stages == 1) break;
      }
      options.schedule.micro_batches = 1;
      const auto expected = run(0);
      const auto found = run(2);
      CHECK(found.observed == expected.observed);
      CHECK(has_bits_of(expected.parameters, found.parameters));
    });
  }
}

TEST_CASE("level 2 trains with matrices that have owners as level 0 does") {
  each_mesh(Architecture::llama, [](const layout::Mesh& mesh) {
    auto options = tiny_options(Architecture::llama, mesh, 12);
    options.schedule.micro_batches = 1;
    options.sharding.rule.kind = optim::RuleKind::muon;
    options.sharding.assignment = ownership::Assignment::contiguous;
    const auto groups = mpi_groups(mesh);
    const auto kernels = device::make_reference_kernels();
    const auto run = [&](int level) {
      options.sharding.zero_level = level;
      return run_training(options, groups.views(), *kernels, steps).observed;
    };
    CHECK(run(2) == run(0));
  });
}

TEST_CASE("level 3 gathers a vocabulary longer than two layers in blocks") {
  for (const auto architecture : {Architecture::llama, Architecture::qwen3}) {
    each_mesh(architecture, [&](const layout::Mesh& mesh) {
      auto options = tiny_options(architecture, mesh, 12);
      options.model.vocab_size = 1000;
      options.schedule.micro_batches = 3;
      compare_levels(options);
    });
  }
}

TEST_CASE("level 3 trains as level 0 does in every schedule") {
  each_mesh(Architecture::llama, [](const layout::Mesh& mesh) {
    const int stages = mesh.degree(Axis::pipeline);
    if (stages == 1) return;
    for (const auto kind : {ScheduleKind::gpipe, ScheduleKind::interleaved,
                            ScheduleKind::zero_bubble_h1, ScheduleKind::zero_bubble_v}) {
      auto options = tiny_options(Architecture::llama, mesh, 12);
      CAPTURE(layout::name(kind));
      options.schedule.kind = kind;
      if (layout::has_virtual_stages(kind)) options.schedule.virtual_stages = 2;
      options.model.num_hidden_layers = 4 * stages;
      options.schedule.micro_batches = 2 * stages;
      options.model.tie_word_embeddings = kind == ScheduleKind::zero_bubble_v;
      compare_levels(options);
    }
  });
}

TEST_CASE("level 3 trains with every rule as level 0 does") {
  using optim::RuleKind;
  for (const auto rule : {RuleKind::sgd, RuleKind::muon, RuleKind::shampoo, RuleKind::soap}) {
    each_mesh(Architecture::llama, [&](const layout::Mesh& mesh) {
      auto options = tiny_options(Architecture::llama, mesh, 12);
      CAPTURE(optim::name(rule));
      options.sharding.rule.kind = rule;
      options.sharding.rule.factors.root_every = 2;
      options.sharding.assignment = ownership::Assignment::contiguous;
      compare_levels(options);
    });
  }
}

TEST_CASE("level 3 evaluates between steps as level 0 does, and has the same parameters") {
  struct Seen {
    std::vector<double> losses;
    std::vector<std::vector<std::uint64_t>> hashes;
    bool operator==(const Seen&) const = default;
  };
  each_mesh(Architecture::gpt2, [](const layout::Mesh& mesh) {
    auto options = tiny_options(Architecture::gpt2, mesh, 12);
    options.numerics.dtype = device::DType::bf16;
    options.schedule.micro_batches = 1;
    const auto groups = mpi_groups(mesh);
    const auto kernels = device::make_reference_kernels();
    const auto run = [&](int level) {
      options.sharding.zero_level = level;
      auto memory = engine::Memory::host(engine::measure(options));
      engine::Engine engine(options, groups.views(), *kernels, memory);
      engine.initialise();
      Seen seen;
      for (int step = 0; step < steps; ++step) {
        fill(engine, step);
        seen.losses.push_back(engine.evaluate().loss_sum);
        fill(engine, step);
        engine.run_schedule();
        const auto reduced = engine.reduce_gradients();
        engine.update({step + 1, 3e-3, reduced.gradient_norm});
        seen.losses.push_back(engine.evaluate().loss_sum);
        std::map<std::string, std::uint64_t> hashes;
        const auto all = engine.parameter_hashes();
        std::size_t index = 0;
        for (const auto& part : engine.parameter_parts()) hashes[part.name] = all[index++];
        auto& sorted = seen.hashes.emplace_back();
        for (const auto& [name, hash] : hashes) sorted.push_back(hash);
      }
      return seen;
    };
    CHECK(run(3) == run(0));
  });
}
