// SPDX-License-Identifier: Apache-2.0
// The update by the same gradients is the same, bit by bit, on one rank and at every layout:
// whoever owns a matrix, and in however many parts its gradient comes to the owner.
#include "trireme/base/json.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/engine/state_parts.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <map>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using model::Architecture;

namespace {

constexpr int steps = 5;

/// The whole batch is 24 sequences of 12 tokens, whatever the mesh.
engine::EngineOptions options_for(optim::RuleKind rule, const layout::Mesh& mesh,
                                  int zero_level = 0) {
  engine::EngineOptions options;
  options.sharding.zero_level = zero_level;
  options.model = tiny(Architecture::llama);
  options.sharding.mesh = mesh;
  options.sharding.rank = base::Rank{mesh.world_size() == 1 ? 0 : mpi().world_rank().value()};
  options.schedule.micro_batch = 1;
  options.schedule.micro_batches = 24 / mesh.degree(layout::Axis::data);
  options.schedule.sequence_length = 12;
  options.sharding.rule.kind = rule;
  options.sharding.rule.factors.root_every = 2;
  // Cases of one rule: heads apart, and a matrix that stays with AdamW.
  if (rule == optim::RuleKind::muon) {
    options.sharding.matrices = {{"layers.1.attention.output.weight"}, true};
  }
  options.sharding.bucket_bytes = 64 << 10;
  options.numerics.clip_norm = 1.0;
  options.numerics.seed = 7;
  return options;
}

/// An engine, with all that it stands on.
struct Rank {
  Rank(const engine::EngineOptions& options, comm::OwnedAxisGroups own, device::Kernels& kernels)
      : groups(std::move(own)),
        memory(engine::Memory::on(kernels.device(), engine::measure(options))),
        engine(options, groups.views(), kernels, memory) {
    engine.initialise();
  }
  comm::OwnedAxisGroups groups;
  engine::Memory memory;
  engine::Engine engine;
};

/// Parts of this rank, with their places: a line of JSON, and the values one after another.
std::string packed(const std::vector<ParameterCopy>& parts) {
  auto places = base::Json::array();
  std::string values;
  for (const auto& part : parts) {
    places.push_back({{"name", part.name},
                      {"shape", part.shape},
                      {"offset", part.box.offset},
                      {"length", part.box.length},
                      {"count", part.values.size()}});
    values.append(reinterpret_cast<const char*>(part.values.data()),
                  part.values.size() * sizeof(float));
  }
  return places.dump() + "\n" + values;
}

using Whole = std::map<std::string, std::vector<float>>;

/// Whole tensors of all ranks' parts. Ranks that have the same part have the same bits.
Whole gathered(const std::vector<ParameterCopy>& mine, comm::ProcessGroup& world) {
  Whole whole;
  std::map<std::string, std::vector<bool>> known;
  std::int64_t different = 0;
  for (const auto& text : comm::all_gather_bytes(world, packed(mine))) {
    const auto end = text.find('\n');
    const char* at = text.data() + end + 1;
    for (const auto& place : base::Json::parse(text.substr(0, end))) {
      ParameterCopy part{place["name"], place["shape"], {place["offset"], place["length"]}, {}};
      part.values.resize(place["count"].get<std::size_t>());
      std::memcpy(part.values.data(), at, part.values.size() * sizeof(float));
      at += part.values.size() * sizeof(float);
      const auto size = static_cast<std::size_t>(layout::element_count(part.shape));
      auto& values = whole[part.name];
      auto& has = known[part.name];
      values.resize(size);
      has.resize(size);
      each_element(part, [&](float value, std::size_t place_in_whole) {
        different += has[place_in_whole] && values[place_in_whole] != value ? 1 : 0;
        values[place_in_whole] = value;
        has[place_in_whole] = true;
      });
    }
  }
  for (const auto& [name, has] : known) {
    CAPTURE(name);
    CHECK(std::find(has.begin(), has.end(), false) == has.end());
  }
  CHECK(different == 0);
  return whole;
}

std::vector<ParameterCopy> gradients_of(engine::Engine& engine) {
  std::vector<ParameterCopy> copies;
  for (const auto& part : engine.parameter_parts()) {
    const auto* const values = part.gradient.f32();
    copies.push_back(
        {part.name, part.shape, part.box, {values, values + part.gradient.element_count()}});
  }
  return copies;
}

void set_gradients(engine::Engine& engine, const Whole& gradients) {
  for (const auto& part : engine.parameter_parts()) {
    const auto& whole = gradients.at(part.name);
    ParameterCopy place{part.name, part.shape, part.box, {}};
    place.values.resize(static_cast<std::size_t>(part.gradient.element_count()));
    auto* to = part.gradient.f32();
    each_element(place, [&](float, std::size_t at) { *to++ = whole.at(at); });
  }
}

std::int64_t differences(const Whole& a, const Whole& b) {
  std::int64_t wrong = a.size() == b.size() ? 0 : 1;
  for (const auto& [name, values] : a) {
    const auto& others = b.at(name);
    for (std::size_t at = 0; at < values.size(); ++at) wrong += values[at] == others[at] ? 0 : 1;
  }
  return wrong;
}

void update_as_one_rank(optim::RuleKind rule, const layout::Mesh& mesh, device::Kernels& kernels,
                        comm::ProcessGroup& world) {
  Rank layout(options_for(rule, mesh), mpi_groups(mesh), kernels);
  const auto one = layout::Mesh::of(1, 1, 1);
  const auto alone = comm::make_local_group("world", base::Rank{0});
  Rank whole(options_for(rule, one), local_groups(), kernels);
  Rank sharded(options_for(rule, mesh, 1), mpi_groups(mesh), kernels);
  auto cut = options_for(rule, mesh, 1);
  cut.sharding.assignment = ownership::Assignment::contiguous;
  Rank ragged(cut, mpi_groups(mesh), kernels);
  auto before = gathered(masters_of(layout.engine), world);
  CHECK(differences(before, gathered(masters_of(whole.engine), *alone)) == 0);
  for (int step = 0; step < steps; ++step) {
    CAPTURE(step);
    fill(layout.engine, step);
    layout.engine.run_schedule();
    const auto reduced = layout.engine.reduce_gradients();
    set_gradients(whole.engine, gathered(gradients_of(layout.engine), world));
    const engine::Update update{step + 1, 3e-3, reduced.gradient_norm};
    layout.engine.update(update);
    whole.engine.update(update);
    const auto after = gathered(masters_of(layout.engine), world);
    CHECK(differences(after, gathered(masters_of(whole.engine), *alone)) == 0);
    CHECK(differences(after, before) > 0);
    for (auto* engine : {&sharded.engine, &ragged.engine}) {
      fill(*engine, step);
      engine->run_schedule();
      engine->update({step + 1, 3e-3, engine->reduce_gradients().gradient_norm});
      CHECK(differences(after, gathered(masters_of(*engine), world)) == 0);
    }
    before = after;
  }
}

/// Largest distance of a tensor of b from that of a, as a part of its length.
double distance(const Whole& a, const Whole& b) {
  double worst = a.size() == b.size() ? 0 : INFINITY;
  for (const auto& [name, values] : a) {
    const auto& others = b.at(name);
    double error = 0;
    double size = 0;
    for (std::size_t at = 0; at < values.size(); ++at) {
      const auto value = static_cast<double>(values[at]);
      const auto difference = static_cast<double>(others[at]) - value;
      error += difference * difference;
      size += value * value;
    }
    const double part = std::sqrt(error / size);
    worst = std::isfinite(part) ? std::max(worst, part) : INFINITY;
  }
  return worst;
}

/// Matrices long enough to be cut, and as many as no share is whole layers.
engine::EngineOptions options_to_share(const layout::Mesh& mesh) {
  auto options = options_for(optim::RuleKind::muon, mesh, 1);
  options.sharding.matrices = {};
  options.model.hidden_size = 192;
  options.model.intermediate_size = 448;
  options.model.head_dim = 16;
  int layers_of_stage = mesh.degree(layout::Axis::data) % 2 == 0 ? 3 : 2;
  // So few matrices that some of a tensor-parallel group would be idle.
  if (mesh.degree(layout::Axis::tensor) > 1) layers_of_stage = 1;
  options.model.num_hidden_layers = layers_of_stage * mesh.degree(layout::Axis::pipeline);
  options.sharding.bucket_bytes = 400 << 10;
  return options;
}

/// Matrices of this rank's stage that are shared.
std::int64_t shared_matrices(const engine::EngineOptions& options) {
  const auto sharding = engine::sharding_of(options);
  std::int64_t count = 0;
  for (int shard = 0; shard < sharding.stage().flat().shards; ++shard) {
    const auto own = sharding.updates_of(shard);
    count += std::count_if(own.segments.begin(), own.segments.end(),
                           [](const auto& segment) { return segment.sharing.has_value(); });
  }
  return count;
}

void update_shared(const layout::Mesh& mesh, device::Kernels& kernels, comm::ProcessGroup& world) {
  auto options = options_to_share(mesh);
  // At level 0 every rank has all reduced gradients, which both update from.
  options.sharding.zero_level = 0;
  Rank whole(options, mpi_groups(mesh), kernels);
  options.sharding.zero_level = 1;
  options.sharding.assignment = ownership::Assignment::shared;
  CHECK(shared_matrices(options) > 0);
  Rank shared(options, mpi_groups(mesh), kernels);
  CHECK(differences(gathered(masters_of(whole.engine), world),
                    gathered(masters_of(shared.engine), world)) == 0);
  for (int step = 0; step < 3; ++step) {
    CAPTURE(step);
    fill(whole.engine, step);
    whole.engine.run_schedule();
    const auto norm = whole.engine.reduce_gradients().gradient_norm;
    set_gradients(shared.engine, gathered(gradients_of(whole.engine), world));
    for (auto* engine : {&whole.engine, &shared.engine}) engine->update({step + 1, 3e-3, norm});
    const auto expected = gathered(masters_of(whole.engine), world);
    CHECK(distance(expected, gathered(masters_of(shared.engine), world)) < 1e-6);
  }
}

}  // namespace

TEST_CASE("shared matrices are updated as whole ones are, to 1e-6") {
  const auto kernels = kernels_under_test();
  const auto world = mpi().make_world({comm::Backend::automatic, 300});
  for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::llama)) {
    if (mesh.degree(layout::Axis::tensor) * mesh.degree(layout::Axis::data) == 1) continue;
    CAPTURE(mesh.text());
    still_going(mesh.text() + " shared");
    update_shared(mesh, *kernels, *world);
  }
}

TEST_CASE("what an update makes of the same gradients is one rank's at every layout") {
  const auto kernels = kernels_under_test();
  const auto world = mpi().make_world({comm::Backend::automatic, 300});
  for (const auto rule : {optim::RuleKind::adamw, optim::RuleKind::muon, optim::RuleKind::shampoo,
                          optim::RuleKind::soap}) {
    for (const auto& mesh : meshes_of(mpi().world_size(), Architecture::llama)) {
      CAPTURE(optim::name(rule), mesh.text());
      still_going(mesh.text() + " " + optim::name(rule));
      update_as_one_rank(rule, mesh, *kernels, *world);
    }
  }
}
