// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/recompute.hpp"

#include "collective.hpp"
#include "operation_costs.hpp"
#include "segment.hpp"

#include <cstddef>
#include <optional>
#include <vector>

/// Operations of the parts of a model for one micro-batch on one rank. Private to the room.
namespace trireme::predict {

/// Backward computes the gradient of its input and those of its weights; schedules that split it
/// have an action for each.
enum class BackwardHalf { input, weight, both };

class LayerOperations {
 public:
  LayerOperations(const Machine& machine, const Workload& workload, const Placement& placement,
                  const OperationCosts& costs, const Links& links);

  /// Calls of the host around an action.
  Operation begin() const;
  std::vector<Operation> forward() const;
  /// `half` is both, or the input's, with what backward computes again.
  std::vector<Operation> backward(const config::ActivationSet& again, BackwardHalf half) const;
  /// The weights' half: by itself it gathers the rows of all gradients and inputs that it reads.
  std::vector<Operation> backward_weight() const;
  std::vector<Operation> embedding() const;
  std::vector<Operation> embedding_backward() const;
  std::vector<Operation> head() const;
  std::vector<Operation> head_backward() const;
  /// Rate of a layer's products over that of large ones.
  double product_share() const;

 private:
  /// Products of a layer: y = x w.
  struct Linear {
    double in = 0;
    double out = 0;
  };
  /// A sum of terms between tensor-parallel ranks: gather before, scatter after split products.
  enum class Side { gather, scatter };

  void add(std::vector<Operation>& list, Part part, Time time) const;
  void add_product(std::vector<Operation>& list, const Linear& linear) const;
  void add_input_gradient(std::vector<Operation>& list, const Linear& linear) const;
  void add_weight(std::vector<Operation>& list, const Linear& linear) const;
  void add_norm(std::vector<Operation>& list, double factor) const;
  void add_sum(std::vector<Operation>& list, double factor) const;
  void add_exchange(std::vector<Operation>& list, Side side) const;
  /// The same, beside what follows until join(); nothing where the program waits for it at once.
  std::optional<std::size_t> start(std::vector<Operation>& list, Side side) const;
  static void join(std::vector<Operation>& list, std::optional<std::size_t> started);
  void add_rotations(std::vector<Operation>& list, double factor) const;
  void add_activation(std::vector<Operation>& list, double factor) const;
  void add_context(std::vector<Operation>& list, Time attention, double factor) const;
  std::vector<Operation> attention_half() const;
  std::vector<Operation> mlp_half(bool last_product) const;
  std::vector<Operation> computed_again(const config::ActivationSet& again,
                                        BackwardHalf half) const;
  Attention attention() const;
  /// Tensors that a norm, or a rotation, reads and writes: once each where passes are fused; else
  /// again for what is computed between them.
  double row_tensors() const;
  Time pass(double factor, double elements) const;
  /// Takes from collectives what goes on beside products in pieces.
  void overlap(std::vector<Operation>& list) const;
  /// Products lack the processors that collectives beside them take.
  void add_contention(std::vector<Operation>& list) const;

  const Workload& workload_;
  const OperationCosts& costs_;
  const Links& links_;
  /// Backward reads its gradient and what forward did.
  static constexpr double backward_passes = 2;

  bool on_cores_;
  /// Backward goes on beside collectives that it has started.
  bool starts_collectives_ = false;
  /// Rows between split products are divided among ranks, and backward gathers those of inputs.
  bool divides_rows_ = false;
  bool gathers_inputs_ = false;
  /// Part of a GPU's processors that a collective takes.
  double taken_ = 0;
  GroupPlace tensor_;
  GroupPlace context_;
  Precision backward_precision_;
  Precision head_precision_;
  double rows_;
  /// Rows of norms and sums.
  double own_rows_;
  Linear qkv_;
  Linear out_;
  Linear up_;
  Linear down_;
  Linear head_;
  Time gap_;
  Time call_gap_;
};

}  // namespace trireme::predict
