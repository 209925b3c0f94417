// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/stage_layers.hpp"

#include "trireme/base/format.hpp"
#include "trireme/layout/balance.hpp"
#include "trireme/model/parameters.hpp"

namespace trireme::engine {
namespace {

/// Head's operations over a layer's, both of forward: backward takes twice as many of each, and
/// tensor parallelism divides both alike.
double head_over_layer(const model::ModelConfig& model, std::int64_t sequence_length) {
  const auto head = static_cast<double>(model.vocab_size) * static_cast<double>(model.hidden_size);
  double layer = 2.0 * static_cast<double>(model.num_attention_heads * model.head_dim) *
                 static_cast<double>(sequence_length);
  // All layers are alike.
  auto of_one_layer = model;
  of_one_layer.num_hidden_layers = 1;
  for (const auto& parameter : model::parameters(of_one_layer)) {
    if (parameter.place.kind != model::Place::Kind::layer || parameter.tensor.shape.size() != 2)
      continue;
    layer += static_cast<double>(layout::element_count(parameter.tensor.shape));
  }
  return head / layer;
}

}  // namespace

std::string StageLayers::text() const {
  return base::format(
      "{} layers a stage: the head is as much work as {:.1f} layers; the stages' mean is {:.0f} % "
      "of the largest's (even: {:.0f} %)",
      base::join(counts, ","), head_layers, 100 * balance, 100 * even_balance);
}

layout::Placement placement_of(const ScheduleOptions& schedule, int stages) {
  return {stages, schedule.virtual_stages, layout::placement_kind(schedule.kind)};
}

StageLayers stage_layers(const model::ModelConfig& model, const ScheduleOptions& schedule,
                         int stages) {
  const auto placement = placement_of(schedule, stages);
  const int layers = model.num_hidden_layers;
  StageLayers result;
  result.counts = schedule.stage_layers;
  if (layers < placement.positions()) return result;
  result.head_layers = head_over_layer(model, schedule.sequence_length);
  const auto of = [&](double head) { return layout::balanced_counts(layers, placement, head); };
  if (result.counts.empty()) result.counts = of(result.head_layers);
  result.balance = layout::balance(result.counts, placement, result.head_layers);
  result.even_balance = layout::balance(of(0.0), placement, result.head_layers);
  return result;
}

std::vector<std::vector<layout::LayerRange>> chunk_layers(const model::ModelConfig& model,
                                                          const ScheduleOptions& schedule,
                                                          int stages) {
  return base::value_or_throw(layout::assign_layers(model.num_hidden_layers,
                                                    placement_of(schedule, stages),
                                                    stage_layers(model, schedule, stages).counts));
}

}  // namespace trireme::engine
