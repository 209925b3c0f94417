// SPDX-License-Identifier: Apache-2.0
// Memory of layers, by which layouts that cannot fit are told without being run.
#include "trireme/engine/measure.hpp"

#include "layout_memory.hpp"

#include <algorithm>
#include <initializer_list>
#include <utility>

namespace trireme::plan {

using layout::Axis;

engine::ScheduleOptions LayoutMemory::one_stage(engine::ScheduleOptions schedule) {
  schedule.kind = layout::ScheduleKind::one_forward_one_backward;
  schedule.virtual_stages = 1;
  schedule.micro_batches = 1;
  return schedule;
}

namespace {

/// Bytes that a stage takes.
struct LayerBytes {
  /// A third layer beside two, for which there is a ring at ZeRO level 3.
  std::size_t layer = 0;
  /// All but layers.
  std::size_t rest = 0;
};

/// Those of these purposes on the first of one stage, or two.
LayerBytes of_layers(engine::EngineOptions options,
                     std::initializer_list<device::Purpose> purposes) {
  options.sharding.rank = base::Rank{0};
  options.schedule = LayoutMemory::one_stage(options.schedule);
  const bool has_other = options.sharding.mesh.degree(Axis::pipeline) > 1;
  const auto with = [&](int layers) {
    options.model.num_hidden_layers = layers + (has_other ? 1 : 0);
    if (has_other) options.schedule.stage_layers = {layers, 1};
    return engine::measure(options);
  };
  const auto two = with(2);
  const auto three = with(3);
  LayerBytes bytes;
  for (const auto purpose : purposes) {
    const auto index = static_cast<std::size_t>(purpose);
    const auto layer = three[index] - std::min(two[index], three[index]);
    bytes.layer += layer;
    bytes.rest += two[index] - std::min(2 * layer, two[index]);
  }
  return bytes;
}

/// Bytes of masters and states that a layer's matrices take of a rank at least: a mean over all
/// that own some.
std::size_t mean_owned_of_layer(const engine::EngineOptions& options) {
  auto model = options.model;
  const auto with = [&](int layers) {
    model.num_hidden_layers = layers;
    return model::parameter_count(model);
  };
  const auto& sharding = options.sharding;
  const auto owners = sharding.mesh.degree(Axis::tensor) *
                      (sharding.divides_updates() ? sharding.mesh.degree(Axis::data) : 1);
  const auto states = std::min(optim::state_names(sharding.rule, optim::Content::elements).size(),
                               optim::state_names(sharding.rule, optim::Content::matrix).size());
  const std::size_t masters = options.numerics.dtype == device::DType::f32 ? 0 : 1;
  constexpr std::size_t fp32_bytes = 4;
  const auto elements = static_cast<std::size_t>((with(3) - with(2)) / owners);
  return fp32_bytes * (masters + states) * elements;
}

}  // namespace

std::size_t LayoutMemory::layer_activations(const engine::EngineOptions& options,
                                            const config::ActivationSet& again) {
  const int tensor = options.sharding.mesh.degree(Axis::tensor);
  const bool is_divided = options.sharding.sequence_parallel == model::SequenceParallel::on;
  Key key{tensor, is_divided ? 1 : 0, options.schedule.micro_batch};
  config::Recompute recompute;
  for (std::size_t index = 0; index < config::activation_count; ++index) {
    const auto kind = static_cast<config::Activation>(index);
    key.push_back(again.has(kind) ? 1 : 0);
    if (again.has(kind)) recompute.add(kind);
  }
  return found_or_made(activations_, key, [&] {
    auto small = options;
    small.sharding.mesh = layout::Mesh::of(1, 1, tensor);
    small.memory.recompute = recompute;
    return of_layers(std::move(small), {device::Purpose::activations}).layer;
  });
}

LayoutMemory::State LayoutMemory::layer_state(const engine::EngineOptions& options) {
  const auto& mesh = options.sharding.mesh;
  const int tensor = mesh.degree(Axis::tensor);
  // One stage has all tables, and at ZeRO level 3 shards of gradients.
  const int stages = std::min(2, mesh.degree(Axis::pipeline));
  const bool has_owners = optim::traits(options.sharding.rule.kind).updates_matrices;
  const Key key{tensor,
                mesh.degree(Axis::data),
                options.sharding.zero_level,
                engine::keeps_weight_copies(options) ? 1 : 0,
                stages,
                has_owners ? static_cast<std::int64_t>(options.sharding.assignment) : -1};
  return found_or_made(states_, key, [&] {
    auto small = options;
    small.sharding.mesh = layout::Mesh::of(stages, mesh.degree(Axis::data), tensor);
    small.sharding.sequence_parallel = model::SequenceParallel::off;
    // Owners of whole matrices have more than others.
    const auto bytes =
        has_owners
            ? of_layers(std::move(small), {device::Purpose::parameters, device::Purpose::gradients})
            : of_layers(std::move(small), {device::Purpose::parameters, device::Purpose::gradients,
                                           device::Purpose::optimizer});
    return State{bytes.layer + (has_owners ? mean_owned_of_layer(options) : 0), bytes.rest};
  });
}

std::size_t LayoutMemory::least_of_stage(const engine::EngineOptions& options, const Stage& stage) {
  std::size_t activations = 0;
  int layer = 0;
  for (std::size_t chunk = 0; chunk < stage.layers.size(); ++chunk) {
    for (const int end = layer + stage.layers[chunk]; layer < end; ++layer) {
      activations += layer_activations(options, options.memory.recompute.in_layer(layer)) *
                     static_cast<std::size_t>(stage.buffers[chunk].activations);
    }
  }
  const auto [of_layer, rest] = layer_state(options);
  // One layer alone has no second place in the ring of weights.
  const bool has_rest = stage.is_first && layer > 1;
  const auto state = static_cast<std::size_t>(layer) * of_layer + (has_rest ? rest : 0);
  // Buckets of gradients are filled up, whose ends fall otherwise.
  constexpr std::size_t hundred = 100;
  return state - state / hundred + activations;
}

std::size_t LayoutMemory::least(const engine::EngineOptions& options) {
  const auto stages = stages_of(options, micro_batches_measured(options));
  const auto& mesh = options.sharding.mesh;
  std::size_t largest = 0;
  std::size_t all = 0;
  for (const auto& stage : *stages) {
    const auto bytes = least_of_stage(options, stage);
    largest = std::max(largest, bytes);
    all += bytes * static_cast<std::size_t>(mesh.world_size() / mesh.degree(Axis::pipeline));
  }
  return owner_ == Owner::rank ? largest : all;
}

}  // namespace trireme::plan
