// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/options.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/layout/box.hpp"
#include "trireme/layout/flat.hpp"
#include "trireme/optim/newton_schulz.hpp"
#include "trireme/ownership/matrix_cost.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::optim {

using RuleKind = config::UpdateRule;
using MatrixScale = config::MatrixScale;

/// Rounding of parameters that are not fp32, when they are written from their masters.
enum class ParameterRounding {
  nearest,
  stochastic  ///< bf16 alone: see device::StochasticRounding
};

/// Muon (Jordan et al. 2024). The factor on a direction of W [out, in] is sqrt(max(1, out / in))
/// (original), 0.2 sqrt(max(out, in)) (match_rms_adamw, Liu et al. 2025, arXiv 2502.16982: AdamW's
/// learning rate and decay carry over) or sqrt(out / in) (unit_rms_norm, Bernstein 2025).
struct MuonRule {
  float momentum = 0.95F;
  device::MeanMomentum::Step step = device::MeanMomentum::Step::nesterov;
  NewtonSchulz newton_schulz;
  MatrixScale scale = MatrixScale::match_rms_adamw;
};

/// The use that Shampoo and SOAP make of the two factors of a matrix (make_shampoo, make_soap).
/// Decays are those of AdamW.
struct FactorRule {
  /// Updates between two roots of the factors, or two renewals of their eigenvectors.
  std::int64_t root_every = 10;
  /// Shampoo: added to eigenvalues, as a part of the largest. Those of fp32 factors are right to
  /// about 1e-7 of it.
  float epsilon = 1e-5F;
  /// Largest side with one factor.
  std::int64_t max_side = 8192;
};

struct Rule {
  RuleKind kind = RuleKind::adamw;
  float beta1 = 0.9F;
  float beta2 = 0.95F;
  float eps = 1e-8F;
  float momentum = 0.9F;  ///< of sgd
  float weight_decay = 0.1F;
  MuonRule muon{};
  FactorRule factors{};
  /// Largest memory of one owner's whole matrices in an exchange of parts, unless it is one matrix.
  std::int64_t group_bytes = std::int64_t{256} << 20;
  /// With a rule for matrices: learning rate of what AdamW updates over that of the matrices.
  double adamw_rate = 1;
  ParameterRounding rounding = ParameterRounding::nearest;
  /// Seed of stochastic rounding.
  std::uint64_t seed = 0;
};
Rule rule_from(const config::Options& options);

/// Traits of a rule that its surroundings see, beside its arithmetic.
struct RuleTraits {
  const char* name = "";
  /// Matrices of layers are updated whole, and everything else by AdamW.
  bool updates_matrices = false;
  /// State of shapes of its own lies at owners (MatrixRule::owner_states).
  bool has_owner_states = false;
  /// Several ranks can compute one matrix (MatrixRule::split), on CPUs.
  bool shares_matrices = false;
  /// Where optimizer.momentum is not given; none: the rule has no such number.
  std::optional<double> momentum{};
  /// Where optimizer.max_side is not given; none: the rule has no factors.
  std::optional<std::int64_t> max_side{};
};
const RuleTraits& traits(RuleKind rule);
inline const char* name(RuleKind rule) {
  return traits(rule).name;
}

/// Kind of a segment, as a rule sees it: elements, or a matrix of a layer, which some rules update
/// whole.
enum class Content { elements, matrix };

/// State that a rule keeps, f32 for each element of this content: "adamw.first_moment".
std::vector<std::string> state_names(const Rule& rule, Content content);

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
class PartExchange;
struct MatrixBatch;
struct MatrixGroup;
struct MatrixRun;
struct MicroGroup;
class SharedUpdate;

/// Other ranks that an update of matrices needs; both outlive the optimizer.
struct Peers {
  /// Where other ranks hold other parts of matrices. Then update() is collective over its ranks.
  PartExchange* exchange = nullptr;
  /// Group of SharedMatrix::Share::rank, where there is a shared matrix.
  comm::ProcessGroup* sharing = nullptr;
};

/// Update rules over the part of the flat buffers that a rank owns: element by element, and of
/// whole matrices. Parameters in fp32 are their own master copy; others get one here.
class Optimizer {
 public:
  /// `sizes`: at least the ends of the last segments.
  Optimizer(const Rule& rule, std::vector<Segment> segments, const StateSizes& sizes,
            const device::Tensor& parameters, device::Arena& arena, const Peers& peers = {});
  ~Optimizer();
  Optimizer(const Optimizer&) = delete;
  Optimizer& operator=(const Optimizer&) = delete;
  Optimizer(Optimizer&&) noexcept;
  Optimizer& operator=(Optimizer&&) = delete;

  /// One update from reduced gradients (f32, flat). `step` counts updates (from 1). `workspace`
  /// lends room for the matrices of a batch.
  void update(device::Kernels& kernels, device::Arena& workspace, const device::Tensor& gradients,
              float learning_rate, float gradient_scale, std::int64_t step);
  /// Parameters become what the masters are now (after initialisation or loading, of states too),
  /// rounded as update `step` rounds them; 0: before the first.
  void give_parameters(device::Kernels& kernels, std::int64_t step);

  struct State {
    std::string name;
    device::Tensor values;  // f32
  };
  /// All of the state's memory, apart from masters.
  const std::vector<State>& states() const { return states_; }
  /// States of a segment's elements by name: what a checkpoint must hold beside the masters.
  std::vector<State> states_of(const Segment& segment) const;
  /// State of shapes of its own that this rank has of a matrix: f32 [rows, columns] each. None of
  /// matrices that others own.
  std::vector<State> owner_states_of(const Segment& segment) const;
  /// All of that state's memory; empty where there is none.
  const device::Tensor& owner_states() const { return owner_states_; }
  /// f32 master of a segment's elements.
  device::Tensor master(const Segment& segment) const;
  const std::vector<Segment>& segments() const { return segments_; }

 private:
  struct Step;
  struct GroupMemory;
  struct SharedPart;

  device::StochasticRounding rounding_of(const Segment& segment, std::int64_t step) const;
  int ranks() const;
  int rank() const;
  void form_groups();
  GroupMemory memory_of_groups(device::Arena& workspace) const;
  MicroGroup micro_group(std::size_t group, const GroupMemory& memory) const;
  device::Tensor own_part(std::size_t group, std::size_t member, const GroupMemory& memory) const;
  void update_elements(device::Kernels& kernels, const Segment& segment, const Step& step);
  void update_all_elements(device::Kernels& kernels, const Step& step);
  std::vector<SharedPart> take_shared(device::Kernels& kernels, device::Arena& workspace,
                                      const Step& step, std::vector<SharedUpdate>& shared) const;
  void update_matrices(device::Kernels& kernels, device::Arena& workspace, const Step& step);
  void update_with_exchange(device::Kernels& kernels, device::Arena& workspace, const Step& step);
  device::Tensor update_count(const Segment& segment) const;
  void know_updates(device::Kernels& kernels, const device::Arena& workspace);
  void take(device::Kernels& kernels, const Segment& segment, const device::Tensor& to,
            const Step& step) const;
  void take(device::Kernels& kernels, std::size_t group, const GroupMemory& memory,
            const Step& step) const;
  void direct(device::Kernels& kernels, device::Arena& workspace, const MatrixGroup& group,
              const device::Tensor& whole);
  void apply(device::Kernels& kernels, const Segment& segment, const device::Tensor& direction,
             const Step& step);
  void apply(device::Kernels& kernels, std::size_t group, const GroupMemory& memory,
             const Step& step);

  Rule rule_;
  std::unique_ptr<MatrixRule> matrix_rule_;
  PartExchange* exchange_;
  comm::ProcessGroup* sharing_;
  std::vector<Segment> segments_;
  std::vector<MatrixGroup> groups_;
  StateSizes sizes_;
  device::Tensor parameters_;
  device::Tensor masters_;     // f32: of elements, then of matrices; empty when parameters are f32
  std::vector<State> states_;  // of elements, then of matrices
  std::size_t element_states_ = 0;
  device::Tensor owner_states_;  // f32
  /// [segment]: updates that its state at owners has had. Empty: not known before the next update.
  std::vector<std::int64_t> updates_;
};

}  // namespace trireme::optim
