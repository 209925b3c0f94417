// SPDX-License-Identifier: Apache-2.0
#include "assignment.hpp"

#include "trireme/model/run_assignment.hpp"
#include "trireme/optim/matrix_rule.hpp"

#include <algorithm>
#include <memory>

namespace trireme::engine {

using layout::Axis;

model::CostOfMatrix cost_of_matrix(const EngineOptions& options) {
  if (!optim::has_matrix_rule(options.rule.kind)) return {};
  return [rule = std::shared_ptr(optim::make_matrix_rule(options.rule, options.dtype))](
             const ownership::MatrixShape& shape) {
    return model::MatrixCost{rule->flops(shape), rule->split(shape)};
  };
}

void choose_assignment(EngineOptions& options) {
  if (!optim::has_matrix_rule(options.rule.kind) || options.zero_level == 0) return;
  const bool on_gpus = options.gpu_attention.has_value();
  const auto& mesh = options.mesh;
  const auto sequences = options.micro_batch * options.micro_batches * mesh.degree(Axis::data);
  model::AssignmentQuestion question{
      .mesh = mesh,
      .bucket_elements = std::max<std::int64_t>(1, options.bucket_bytes / 4),
      .cost = cost_of_matrix(options),
      .matrices = options.matrices,
      .can_share = options.rule.kind == optim::RuleKind::muon && !on_gpus,
      .work = {.parameters = static_cast<double>(model::parameter_count(options.model)),
               .tokens = static_cast<double>(sequences * options.sequence_length),
               .parameter_bytes = static_cast<int>(device::size_of(options.dtype)),
               .micro_batches = static_cast<double>(options.micro_batches)},
      .machine = on_gpus ? ownership::MachineSpeeds{} : ownership::speeds_of_cpus()};
  auto chosen = model::run_assignment(options.model, question);
  options.assignment = chosen.assignment;
  options.assignment_reason = std::move(chosen.reason);
}

}  // namespace trireme::engine
