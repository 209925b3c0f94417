// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/arena.hpp"
#include "trireme/device/host_tier.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/layout/box.hpp"
#include "trireme/layout/flat.hpp"
#include "trireme/optim/rule.hpp"
#include "trireme/ownership/matrix_cost.hpp"

#include <concepts>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace trireme::optim {

/// Division of one matrix among ranks: consecutive data-parallel ones, or a tensor-parallel group.
struct SharedMatrix {
  struct Share {
    int rank = 0;
    /// The box that it holds; together they are the matrix.
    layout::Box held{};
    /// The range that it computes, along the longer side: of a matrix with more rows than columns
    /// its rows. May be empty.
    layout::FlatRange slice{};
  };
  std::vector<Share> shares;
  /// [run of steps]: the rank of its work on [n, n] matrices.
  std::vector<int> gram_ranks;
  /// The same on all its ranks, and another for each matrix.
  int number = 0;
};

/// A run of elements that this rank updates: where they lie in the flat parameter and gradient
/// buffers, and where their state begins among that of their content.
struct Segment {
  layout::FlatRange flat{};
  std::int64_t state_begin = 0;
  bool decays = true;
  /// For stochastic rounding: the one tensor that its elements belong to, as a stream, and where
  /// they lie in it. The seed comes with the step.
  device::StochasticRounding place{};
  Content content = Content::elements;
  /// Shape of a matrix.
  ownership::MatrixShape shape{};
  /// Turn of its renewals among the updates of its state (MatrixRule::renewal).
  std::int64_t renewal_turn = 0;
  /// Equal blocks of rows that are matrices of their own to the rule: heads.
  std::int64_t blocks = 1;
  /// [rank of a part exchange]: the part of the matrix that it has. The segment is that of the own
  /// rank; without an exchange it is the matrix.
  std::vector<layout::Box> parts{};
  /// Rank that has a matrix with an exchange whole between gather and scatter.
  int owner = 0;
  /// Where its owner's state begins among that of all matrices of the owner.
  std::int64_t owner_state_begin = 0;
  /// Sharing of a matrix that several ranks compute: the segment is what this one holds.
  std::optional<SharedMatrix> sharing{};
};

/// Elements of state buffers, by content.
struct StateSizes {
  std::int64_t elements = 0;
  std::int64_t matrices = 0;
  /// Elements of state at owners (MatrixRule::owner_states).
  std::int64_t owner = 0;
};

class MatrixRule;

/// Numbers of a rank's elements: of all of the flat buffer, or of its segments alone, which lie as
/// their state does, those of elements before those of matrices.
class FlatValues {
 public:
  FlatValues() = default;
  // NOLINTNEXTLINE(google-explicit-constructor): a flat buffer is what most ranks have.
  FlatValues(const std::convertible_to<device::Tensor> auto& all) : values_(all) {}
  FlatValues(device::Tensor own, const StateSizes& sizes)
      : values_(std::move(own)), matrices_begin_(sizes.elements) {}

  device::Tensor of(const Segment& segment) const {
    if (!matrices_begin_) return values_.slice(0, segment.flat.begin, segment.flat.size());
    const auto before = segment.content == Content::matrix ? *matrices_begin_ : 0;
    return values_.slice(0, before + segment.state_begin, segment.flat.size());
  }
  device::DType dtype() const { return values_.dtype(); }
  explicit operator bool() const { return static_cast<bool>(values_); }

 private:
  device::Tensor values_;
  std::optional<std::int64_t> matrices_begin_;
};

/// Host memory as the home of masters and states of elements, which an update reads and writes in a
/// ring of chunks of the device's.
struct StateOffload {
  device::HostTier& tier;
  device::Arena& homes;
  /// Most memory of a chunk: masters and states of as many elements as fit.
  std::int64_t chunk_bytes = 0;
};

struct NamedState {
  std::string name;
  device::Tensor values;  // f32
};

/// Parameters that a rank updates, and what it keeps for that. Parameters in fp32 are their own
/// master copy; others get one here.
class OptimizerState {
 public:
  /// `sizes`: at least the ends of the last segments. `arena`: where state lies, of the device or
  /// of homes. `rank`: of this one among owners of matrices.
  OptimizerState(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
                 const FlatValues& parameters, device::Arena& arena, int rank);

  const std::vector<Segment>& segments() const { return segments_; }
  /// Null where all parameters are updated element by element.
  const MatrixRule* matrix_rule() const { return matrix_rule_.get(); }
  device::DType parameter_type() const { return parameters_.dtype(); }
  device::Tensor parameter(const Segment& segment) const;
  /// f32 master of a segment's elements.
  device::Tensor master(const Segment& segment) const;
  /// Whether masters have memory of their own.
  bool has_masters() const { return static_cast<bool>(masters_); }
  /// All of the state's memory, apart from masters.
  const std::vector<NamedState>& all() const { return states_; }
  /// States of a segment's elements by name: what a checkpoint must hold beside the masters.
  std::vector<NamedState> of(const Segment& segment) const;
  /// All of the memory of states of shapes of their own; empty where there is none.
  const device::Tensor& owner_states() const { return owner_states_; }
  /// Those that this rank has of a matrix: f32 [rows, columns] each. None of matrices that others
  /// own.
  std::vector<NamedState> owner_states_of(const Segment& segment) const;

  /// Rounding of a segment's parameters in update `step`; 0: before the first.
  device::StochasticRounding rounding(const Segment& segment, std::int64_t step) const;
  /// Parameters of a segment become what its master, in the device's memory, is now, rounded as
  /// update `step` rounds them.
  void copy_to_parameter(device::Kernels& kernels, const Segment& segment,
                         const device::Tensor& master, std::int64_t step) const;

 private:
  ParameterRounding rounding_;
  std::uint64_t seed_;
  std::shared_ptr<const MatrixRule> matrix_rule_;
  std::vector<Segment> segments_;
  int rank_;
  FlatValues parameters_;
  FlatValues masters_;              // f32; empty when parameters are f32
  std::vector<NamedState> states_;  // of elements, then of matrices
  std::size_t element_states_ = 0;
  device::Tensor owner_states_;  // f32
};

}  // namespace trireme::optim
