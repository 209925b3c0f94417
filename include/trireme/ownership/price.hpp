// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/ownership/plan.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

/// Time of a step's communication and update, predicted from counted FLOPs and bytes.
namespace trireme::ownership {

/// Collectives of parts of different lengths, as libraries have them.
enum class RaggedCollectives {
  start_for_each,  ///< one start for each owner; bytes as fast as those of equal parts
  as_equal         ///< one start, as MPI's collectives with counts
};

/// When parameters are gathered.
enum class Gathers {
  behind_forward,  ///< while the next forward computes, which waits for each bucket where it needs
                   ///< it
  at_once          ///< behind the update, and nothing else meanwhile
};

/// Rates that predictions divide by: an H100 node with eight GPUs and a 400 Gb/s NIC for each.
struct MachineSpeeds {
  /// Products of large bf16 matrices: three quarters of the 769 to 798 TFLOP/s that an H200 does on
  /// random numbers (the data sheet says 989).
  double product_flops = 600e12;
  /// Rate of a GPU in training, all included: 41 % of the data sheet.
  double training_flops = 405e12;
  /// Data sheet, H100 SXM.
  double memory_bytes = 3.35e12;
  /// Bus bandwidth of NCCL over NVLink in a node, of a GPU.
  double node_bytes = 370e9;
  /// 400 Gb/s.
  double network_bytes = 50e9;
  int gpus_per_node = 8;
  /// Start of a collective, and of a kernel.
  double collective_seconds = 20e-6;
  double launch_seconds = 5e-6;
  RaggedCollectives ragged = RaggedCollectives::start_for_each;
  Gathers gathers = Gathers::behind_forward;

  /// Bus bandwidth of a GPU in collectives along dp: the NICs of a node's GPUs work together for
  /// those of its GPUs that are in one group.
  double data_bytes(int data, int tensor) const;
  /// Each constant with its unit, for print.
  std::string text() const;
};
/// A rank on a core of its own, with MPI: fp32 products as measured (docs/matrix-optimizers.md),
/// round figures of servers for the others. Which plan is better hardly depends on them.
MachineSpeeds speeds_of_cpus();

/// The work of a step beside its update.
struct StepWork {
  double parameters = 0;
  double tokens = 0;
  int parameter_bytes = 2;
  /// Micro-batches of a step: the last one's backward hides reductions, the first one's forward
  /// gathers.
  double micro_batches = 1;

  /// Forward and backward on so many GPUs: 6 FLOPs a parameter and token.
  double training_seconds(const MachineSpeeds& machine, int ranks) const;
};

/// Seconds of a step that forward and backward do not hide.
struct StepPrice {
  /// Gradients by reduce-scatter, beyond backward; the last bucket's begins when backward ends.
  double reduce = 0;
  /// Matrices to and from their owners among tensor-parallel ranks, beyond what computing hides,
  /// and rows of shared matrices for columns.
  double exchange = 0;
  /// From the first kernel of an update to the last of the slowest rank, waits for terms of shared
  /// matrices included.
  double compute = 0;
  double launch = 0;
  /// Parameters by all-gather, beyond forward: buckets one after the other in the order in which it
  /// needs them, the first before it begins.
  double gather = 0;

  /// Time of the update, usually called the optimizer's step.
  double update() const { return exchange + compute + launch; }
  double total() const { return reduce + update() + gather; }
};

/// Seconds of all of a plan's gathers, hidden or not.
double gather_seconds(const Plan& plan, const StepWork& work, const MachineSpeeds& machine);
StepPrice price(const Plan& plan, std::span<const OwnedTensor> tensors, const StepWork& work,
                const MachineSpeeds& machine);
/// AdamW for all parameters at ZeRO level 1: flat_layout() as a plan without owners.
Plan plan_of_adamw(std::span<const OwnedTensor> tensors, const PlanOptions& options);

struct PricedPlan {
  Plan plan;
  StepPrice price;
};
/// A plan, the plans of the other assignments, and why it is this one.
struct ChosenPlan {
  PricedPlan chosen;
  std::vector<PricedPlan> others;
  std::string reason;
};
/// The plan with the smallest total, of equals the first; or the one that is `asked` for.
ChosenPlan choose(std::vector<PricedPlan> plans, std::optional<Assignment> asked = std::nullopt);
/// choose() among the plans of all assignments.
ChosenPlan choose_plan(std::span<const OwnedTensor> tensors, const PlanOptions& options,
                       const StepWork& work, const MachineSpeeds& machine,
                       std::optional<Assignment> asked = std::nullopt);

/// Bytes that all ranks send in a step between tensor-parallel ranks (matrices to their owners at
/// four bytes an element and back in parameter_bytes), and between ranks that share a matrix (rows
/// for columns and back, in parameter_bytes; terms of [n, n] sums at four bytes, results in
/// parameter_bytes, in each round).
double exchange_bytes(const Plan& plan, std::span<const OwnedTensor> tensors, int parameter_bytes);

}  // namespace trireme::ownership
