// SPDX-License-Identifier: Apache-2.0
#include "trireme/sharding/assignment.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/model/run_assignment.hpp"
#include "trireme/optim/matrix_rule.hpp"

#include <memory>
#include <utility>

namespace trireme::sharding {

using layout::Axis;

model::CostOfMatrix cost_of_matrix(const optim::Rule& rule, device::DType products) {
  if (!optim::traits(rule.kind).updates_matrices) return {};
  return [matrices = std::shared_ptr(optim::make_matrix_rule(rule, products))](
             const ownership::MatrixShape& shape) {
    return model::MatrixCost{matrices->flops(shape), matrices->split(shape),
                             matrices->renewal(shape)};
  };
}

void choose_assignment(Options& options, const model::ModelConfig& model, device::DType products,
                       const ownership::StepWork& work, bool on_gpus) {
  const auto& rule = optim::traits(options.rule.kind);
  model::AssignmentQuestion question{
      .mesh = options.mesh,
      .bucket_elements = options.bucket_elements(),
      .cost = cost_of_matrix(options.rule, products),
      .matrices = options.matrices,
      .borders = options.borders(),
      .can_share = rule.shares_matrices && !on_gpus,
      .work = work,
      .machine = on_gpus ? ownership::MachineSpeeds{} : ownership::speeds_of_cpus()};
  auto chosen = model::run_assignment(model, question);
  options.assignment = chosen.assignment;
  options.assignment_reason = std::move(chosen.reason);
}

base::Status check(const Options& options, const model::ModelConfig& model, bool on_gpus) {
  const auto& rule = optim::traits(options.rule.kind);
  if (!rule.updates_matrices) return {};
  const bool shares = options.assignment == ownership::Assignment::shared &&
                      (options.divides_updates() || options.mesh.degree(Axis::tensor) > 1);
  if (options.assignment == ownership::Assignment::padded &&
      options.borders() == model::BucketBorders::units) {
    return base::usage_failure(base::format(
        "optimizer.assignment = padded does not go with parallel.zero_level = {} and "
        "optimizer.name = {} (each layer is moved by itself, in equal shards as long as its "
        "largest matrix); use auto or contiguous, or set parallel.zero_level=1",
        options.zero_level, rule.name));
  }
  if (shares && !rule.shares_matrices) {
    return base::usage_failure(
        base::format("optimizer.assignment = shared but optimizer.name = {} (its matrices need "
                     "one owner each); use padded or contiguous",
                     rule.name));
  }
  if (shares && on_gpus) {
    return base::usage_failure(
        "optimizer.assignment = shared but numerics.backend = cuda (shared matrices are computed "
        "on CPUs alone); use padded");
  }
  return model::check(options.matrices, model);
}

}  // namespace trireme::sharding
