// SPDX-License-Identifier: Apache-2.0
#include "trireme/layers/stage.hpp"

#include "trireme/telemetry/spans.hpp"

#include "layers/chunk_tensors.hpp"
#include "layers/embedding.hpp"
#include "layers/forward/layers_forward.hpp"
#include "layers/head.hpp"
#include "layers/layer.hpp"

#include <optional>
#include <utility>
#include <vector>

namespace trireme::layers {

using device::Tensor;
using telemetry::SpanKind;
using telemetry::SpanScope;

namespace {

constexpr model::Place table_place{model::Place::Kind::embedding, 0};
constexpr model::Place head_place{model::Place::Kind::head, 0};

}  // namespace

struct Chunk::Parts {
  const StageContext& context;
  Role role;
  RotaryTables rotary;
  std::optional<Embedding> embedding;
  std::vector<TransformerLayer> layers;
  std::optional<Head> head;
  std::vector<Slot> slots;
  std::vector<Operands> all_operands;
  std::vector<Left> all_left;
  Tensor losses;

  Slot make_slot(device::Arena& arena) const {
    Slot slot;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const bool given = layer == 0 && !role.first;
      slot.boundaries.push_back(given ? Tensor{} : context.stream(arena));
      slot.layers.push_back(layers[layer].allocate(arena));
    }
    if (role.last) {
      const bool given = layers.empty() && !role.first;
      slot.boundaries.push_back(given ? Tensor{} : context.stream(arena));
    }
    return slot;
  }

  Operands make_operands(device::Arena& arena) const {
    Operands operands;
    for (const auto& layer : layers) operands.layers.push_back(layer.allocate_operands(arena));
    if (role.last) operands.head_gradient = context.stream(arena);
    return operands;
  }

  /// Activations of a micro-batch. A part that is launched as a graph does not come here: whoever
  /// does binds anew.
  Slot& held_in(Places places) {
    auto& held = slots[static_cast<std::size_t>(places.slot)];
    const auto& operands = all_operands[static_cast<std::size_t>(places.operands)];
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      layers[layer].bind(held.layers[layer], operands.layers[layer]);
    }
    held.head_gradient = operands.head_gradient;
    return held;
  }

  Left make_left(device::Arena& arena) const {
    Left left;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const bool given = layer + 1 == layers.size();
      const bool stays = !given && layers[layer].weights_read_output_gradient();
      left.layers.push_back(layers[layer].allocate_left(arena));
      left.outputs.push_back(stays ? context.stream(arena) : Tensor{});
    }
    return left;
  }

  model::Place model_place_of(std::size_t layer) const {
    return {model::Place::Kind::layer, role.layers.begin + static_cast<int>(layer)};
  }

  /// Walks down the layers with the gradient of the chunk's output: act(layer, d_out, d_x, rooms).
  /// A gradient between layers is where `left` has room for it, if there is one, or takes turns.
  template <typename Act>
  void walk_down(const Slot& held, const Left* left, const Tensor& d_output, const Tensor& d_input,
                 const MicroBatch& batch, const Act& act) const {
    // Two buffers take turns as the gradient that travels down the layers.
    const Tensor turns[] = {context.stream(context.workspace), context.stream(context.workspace)};
    BackwardRooms rooms;
    if (!layers.empty()) {
      for (auto& room : rooms.turns) room = room_for_rows(context, context.workspace);
    }
    Tensor d_out = head ? held.head_gradient : d_output;
    for (std::size_t layer = layers.size(); layer-- > 0;) {
      Tensor d_x = layer == 0 && !embedding ? d_input : turns[layer % 2];
      if (layer > 0 && left != nullptr && left->outputs[layer - 1]) d_x = left->outputs[layer - 1];
      WeightLease lease(context.weights, model_place_of(layer), Pass::backward_input);
      rooms.goes_on = layer > 0;
      act(layer, d_out, d_x, rooms);
      lease.end();
      context.progress();
      d_out = d_x;
    }
    if (layers.empty() && d_input) context.kernels.issue(device::Copy{d_out, d_input});
    if (!embedding) return;
    WeightLease lease(context.weights, table_place, Pass::backward_weight);
    {
      const SpanScope span(SpanKind::embedding);
      embedding->backward(batch, d_out);
    }
    lease.end();
  }

  /// A chunk without layers or head: parallel.stage_layers may give a position none.
  void hand_on(const MicroBatch& batch, const Tensor& input, const Tensor& output) const {
    if (embedding) {
      WeightLease lease(context.weights, table_place, Pass::forward);
      embedding->forward(batch, output);
      lease.end();
    } else {
      context.kernels.issue(device::Copy{input, output});
    }
  }

  /// Embedding, if any, and all layers; the last boundary is the head's input.
  const Slot& run_layers(const MicroBatch& batch, Places places, const Tensor& input,
                         const Tensor& output) {
    auto& held = held_in(places);
    if (layers.empty() && !role.last) {
      hand_on(batch, input, output);
      return held;
    }
    if (!embedding) held.boundaries[0] = input;
    if (embedding) {
      WeightLease lease(context.weights, table_place, Pass::forward);
      {
        const SpanScope span(SpanKind::embedding);
        embedding->forward(batch, held.boundaries[0]);
      }
      lease.end();
    }
    std::vector<LayersForward::Step> steps;
    for (std::size_t layer = 0; layer < layers.size(); ++layer) {
      const bool leaves = layer + 1 == layers.size() && !role.last;
      steps.push_back({layers[layer], model_place_of(layer), held.layers[layer],
                       held.boundaries[layer], leaves ? output : held.boundaries[layer + 1]});
    }
    LayersForward(context, batch, std::move(steps)).run();
    return held;
  }
};

std::vector<model::Place> Chunk::Role::places() const {
  std::vector<model::Place> places;
  if (first) places.push_back(table_place);
  for (int layer = layers.begin; layer < layers.end; ++layer) {
    places.push_back({model::Place::Kind::layer, layer});
  }
  if (last) places.push_back(head_place);
  return places;
}

Chunk::Chunk(const StageContext& context, const model::StageParameters& stage, const Role& role,
             const layout::ChunkBuffers& buffers, device::Arena& activations,
             device::Arena& constants, const Chunk* beside)
    : parts_(new Parts{context, role, {}, {}, {}, {}, {}, {}, {}, {}}) {
  const auto& config = context.config;
  if (beside != nullptr) {
    parts_->rotary = beside->parts_->rotary;
  } else if (config.has_rotary()) {
    parts_->rotary = make_rotary_tables(context, context.whole_length(), constants);
  }
  if (role.first) parts_->embedding.emplace(context, stage);
  for (int layer = role.layers.begin; layer < role.layers.end; ++layer) {
    const int of_stage = role.layers_before + layer - role.layers.begin;
    parts_->layers.emplace_back(context, stage, layer, parts_->rotary,
                                context.recompute.in_layer(of_stage));
  }
  if (role.last) {
    parts_->head.emplace(context, stage);
    parts_->losses = activations.allocate(device::DType::f32, {context.rows()});
  }
  for (int slot = 0; slot < buffers.activations; ++slot) {
    parts_->slots.push_back(parts_->make_slot(activations));
  }
  for (int place = 0; place < buffers.operands; ++place) {
    parts_->all_operands.push_back(parts_->make_operands(activations));
  }
  for (int place = 0; place < buffers.left; ++place) {
    parts_->all_left.push_back(parts_->make_left(activations));
  }
}

Chunk::~Chunk() = default;
Chunk::Chunk(Chunk&&) noexcept = default;
Chunk& Chunk::operator=(Chunk&&) noexcept = default;

void Chunk::forward(const MicroBatch& batch, Places places, const Tensor& input,
                    const Tensor& output) {
  const auto& held = parts_->run_layers(batch, places, input, output);
  if (parts_->head) {
    WeightLease lease(parts_->context.weights, head_place, Pass::forward);
    // Its backward is in forward.
    WeightLease gradients(parts_->context.weights, head_place, Pass::backward_weight);
    {
      const SpanScope span(SpanKind::head);
      parts_->head->loss(batch, held.boundaries.back(), parts_->losses, held.head_gradient);
    }
    gradients.end();
    lease.end();
  }
}

void Chunk::forward_only(const MicroBatch& batch, const Tensor& input, const Tensor& output) {
  const auto& held = parts_->run_layers(batch, {}, input, output);
  if (parts_->head && batch.targets) {
    WeightLease lease(parts_->context.weights, head_place, Pass::forward);
    {
      const SpanScope span(SpanKind::head);
      parts_->head->loss(batch, held.boundaries.back(), parts_->losses, {});
    }
    lease.end();
  }
}

void Chunk::backward(const MicroBatch& batch, Places places, const Tensor& input,
                     const Tensor& d_output, const Tensor& d_input,
                     const std::function<void(const model::Place&)>& completed) {
  auto& held = parts_->held_in(places);
  const device::ArenaScope scope(parts_->context.workspace);
  if (parts_->head) completed(head_place);
  if (!parts_->embedding) held.boundaries[0] = input;
  parts_->walk_down(
      held, nullptr, d_output, d_input, batch,
      [&](std::size_t layer, const Tensor& d_out, const Tensor& d_x, BackwardRooms& rooms) {
        parts_->layers[layer].backward(batch, held.boundaries[layer], held.layers[layer], d_out,
                                       d_x, rooms);
        completed(parts_->model_place_of(layer));
      });
  if (parts_->embedding) completed(table_place);
}

void Chunk::backward_input(const MicroBatch& batch, Places places, const Tensor& input,
                           const Tensor& d_output, const Tensor& d_input) {
  auto& held = parts_->held_in(places);
  const auto& left = parts_->all_left[static_cast<std::size_t>(places.left)];
  const device::ArenaScope scope(parts_->context.workspace);
  if (!parts_->embedding) held.boundaries[0] = input;
  parts_->walk_down(
      held, &left, d_output, d_input, batch,
      [&](std::size_t layer, const Tensor& d_out, const Tensor& d_x, BackwardRooms& rooms) {
        parts_->layers[layer].backward_input(batch, held.boundaries[layer], held.layers[layer],
                                             d_out, d_x, left.layers[layer], rooms);
      });
}

void Chunk::backward_weight(Places places, const Tensor& d_output,
                            const std::function<void(const model::Place&)>& completed) {
  const auto& operands = parts_->all_operands[static_cast<std::size_t>(places.operands)];
  const auto& left = parts_->all_left[static_cast<std::size_t>(places.left)];
  if (parts_->head) completed(head_place);
  for (std::size_t layer = parts_->layers.size(); layer-- > 0;) {
    const bool is_last = layer + 1 == parts_->layers.size();
    const auto& of_chunk = parts_->head ? operands.head_gradient : d_output;
    WeightLease lease(parts_->context.weights, parts_->model_place_of(layer),
                      Pass::backward_weight);
    parts_->layers[layer].backward_weight(
        operands.layers[layer], is_last ? of_chunk : left.outputs[layer], left.layers[layer]);
    lease.end();
    completed(parts_->model_place_of(layer));
    parts_->context.progress();
  }
  if (parts_->embedding) completed(table_place);
}

const Tensor& Chunk::losses() const {
  return parts_->losses;
}

void Chunk::logits(const Tensor& logits) const {
  WeightLease lease(parts_->context.weights, head_place, Pass::forward);
  parts_->head->logits(parts_->slots[0].boundaries.back(), logits);
  lease.end();
}

std::int64_t Chunk::local_vocabulary() const {
  return parts_->head->local_vocabulary();
}
std::int64_t Chunk::first_token() const {
  return parts_->head->first_token();
}

}  // namespace trireme::layers
