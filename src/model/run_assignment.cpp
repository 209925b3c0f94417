// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/run_assignment.hpp"

namespace trireme::model {

using layout::Axis;
using ownership::Assignment;

RunAssignment run_assignment(const ModelConfig& config, const AssignmentQuestion& question) {
  const auto& mesh = question.mesh;
  if (mesh.degree(layout::replica_axes) == 1)
    return {Assignment::padded, "one rank owns all matrices"};
  const int stages = mesh.degree(Axis::pipeline);
  auto stage = config;
  stage.num_hidden_layers = (config.num_hidden_layers + stages - 1) / stages;
  auto tensors = owned_tensors(stage, mesh.degree(Axis::tensor), question.cost, question.matrices,
                               question.borders);
  // Parameters that AdamW updates lie in buckets of their own in either.
  std::erase_if(tensors, [](const ownership::OwnedTensor& tensor) { return !tensor.is_matrix(); });
  ownership::PlanOptions options;
  options.data = mesh.degree(layout::replica_axes);
  options.tensor = mesh.degree(Axis::tensor);
  options.bucket_elements = question.bucket_elements;
  auto work = question.work;
  work.parameters /= stages;
  std::vector<ownership::PricedPlan> plans;
  for (const auto each : ownership::all_assignments) {
    if (each == Assignment::shared && !question.can_share) continue;
    // Each of a layer's equal shards would be as long as its largest matrix.
    if (each == Assignment::padded && question.borders == BucketBorders::units) continue;
    auto plan = ownership::make_plan(tensors, options, each);
    const auto cost = price(plan, tensors, work, question.machine);
    plans.push_back({std::move(plan), cost});
  }
  const auto choice = ownership::choose(std::move(plans));
  return {choice.chosen.plan.assignment, choice.reason};
}

}  // namespace trireme::model
