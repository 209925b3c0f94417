// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/graph.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/engine/state_parts.hpp"
#include "trireme/model/parameters.hpp"

#include <algorithm>

namespace trireme::plan {

using layout::Axis;
using model::Place;

namespace {

bool is_in(const Place& place, const GraphChunk& chunk) {
  switch (place.kind) {
    case Place::Kind::embedding:
      return chunk.embeds;
    case Place::Kind::head:
      return chunk.has_head;
    case Place::Kind::layer:
      break;
  }
  return chunk.layers.begin <= place.layer && place.layer < chunk.layers.end;
}

/// The chunk's part of model::flops_per_token: six for each element of a matrix that enters a
/// product, and attention's products of activations.
double flops_of(const GraphChunk& chunk, const model::ModelConfig& config,
                std::int64_t sequence_length) {
  double elements = 0;
  for (const auto& parameter : model::parameters(config)) {
    const bool looked_up = parameter.place.kind == Place::Kind::embedding;
    if (parameter.tensor.shape.size() < 2 || looked_up || !is_in(parameter.place, chunk)) continue;
    elements += static_cast<double>(layout::element_count(parameter.tensor.shape));
  }
  if (config.tie_word_embeddings && chunk.has_head) {
    elements += static_cast<double>(config.vocab_size * config.hidden_size);
  }
  const double attention = 12.0 * (chunk.layers.end - chunk.layers.begin) *
                           static_cast<double>(config.num_attention_heads * config.head_dim) *
                           static_cast<double>(sequence_length);
  return 6.0 * elements + attention;
}

/// The rank at coordinate 0 of all axes but the pipeline's.
base::Rank first_rank_of(const layout::Mesh& mesh, int stage) {
  for (int rank = 0; rank < mesh.world_size(); ++rank) {
    const base::Rank candidate{rank};
    const auto& axes = mesh.axes();
    const bool fits = std::all_of(axes.begin(), axes.end(), [&](const auto& axis) {
      const int wanted = axis.axis == Axis::pipeline ? stage : 0;
      return mesh.coordinate(axis.axis, candidate) == wanted;
    });
    if (fits) return candidate;
  }
  return base::Rank{0};
}

/// Elements that the stage's first rank holds of the chunk.
std::int64_t rank_elements(const GraphChunk& chunk, const sharding::Sharding& any) {
  const auto sharding = any.seen_by(first_rank_of(any.options().mesh, chunk.stage));
  std::int64_t count = 0;
  for (const auto& fused : sharding.stage().fused_parameters()) {
    // The last stage's copy of a tied table has the embedding's place.
    const bool copied = fused.tied && chunk.has_head;
    if (!is_in(fused.place, chunk) && !copied) continue;
    for (const auto& piece : fused.pieces) count += piece.flat.size();
  }
  return count;
}

std::int64_t element_count(const GraphChunk& chunk, const model::ModelConfig& config) {
  std::int64_t count = 0;
  for (const auto& parameter : model::parameters(config)) {
    if (is_in(parameter.place, chunk)) count += layout::element_count(parameter.tensor.shape);
  }
  return count;
}

std::vector<GraphParameter>& list_of(ModelGraph& graph, const Place& place) {
  switch (place.kind) {
    case Place::Kind::embedding:
      return graph.embedding;
    case Place::Kind::head:
      return graph.head;
    case Place::Kind::layer:
      break;
  }
  return graph.layer;
}

}  // namespace

std::int64_t ModelGraph::parameters() const {
  std::int64_t sum = 0;
  for (const auto& chunk : chunks) sum += chunk.parameters;
  return sum;
}

double ModelGraph::flops_per_token() const {
  double sum = 0;
  for (const auto& chunk : chunks) sum += chunk.flops_per_token;
  return sum;
}

base::Result<ModelGraph> model_graph(const config::Config& config, const model::ModelConfig& model,
                                     int world_size) {
  const auto mesh = engine::mesh_from(config, model, world_size);
  if (!mesh) return mesh.failure();
  auto options = engine::options_from(config, model, *mesh, base::Rank{0});
  if (!options) return options.failure();
  const auto& schedule = options->schedule;
  const int stages = mesh->degree(Axis::pipeline);
  const auto placement = engine::placement_of(schedule, stages);
  const auto layers = engine::chunk_layers(model, schedule, stages);
  const auto sharding = engine::sharding_of(*options);
  ModelGraph graph;
  graph.model = model;
  graph.mesh = *mesh;
  graph.virtual_stages = schedule.virtual_stages;
  graph.micro_batches = schedule.micro_batches;
  graph.dtype = options->numerics.dtype;
  for (int position = 0; position < placement.positions(); ++position) {
    const auto place = placement.place_of(position);
    const auto& of_stage = layers[static_cast<std::size_t>(place.stage)];
    GraphChunk chunk{.stage = place.stage,
                     .virtual_stage = place.virtual_stage,
                     .layers = of_stage[static_cast<std::size_t>(place.virtual_stage)],
                     .embeds = placement.is_first(place),
                     .has_head = placement.is_last(place)};
    chunk.parameters = element_count(chunk, model);
    chunk.rank_parameters = rank_elements(chunk, sharding);
    chunk.flops_per_token = flops_of(chunk, model, schedule.sequence_length);
    graph.chunks.push_back(chunk);
  }
  for (const auto& parameter : model::parameters(model)) {
    // Layers are alike; so is what they hold.
    if (parameter.place.kind == Place::Kind::layer && parameter.place.layer != 0) continue;
    list_of(graph, parameter.place)
        .push_back({parameter.tensor.name, parameter.tensor.shape,
                    layout::shard_box(parameter.tensor, *mesh, base::Rank{0}).length});
  }
  const auto rows = schedule.micro_batch * schedule.sequence_length;
  const int shared = options->sharding.sequence_parallel == model::SequenceParallel::on
                         ? mesh->degree(Axis::tensor)
                         : 1;
  graph.message = {rows / shared, model.hidden_size};
  graph.message_bytes =
      static_cast<std::size_t>(layout::element_count(graph.message)) * device::size_of(graph.dtype);
  return graph;
}

}  // namespace trireme::plan
