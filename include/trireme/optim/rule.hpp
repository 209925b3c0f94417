// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/options.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/optim/newton_schulz.hpp"

#include <cstdint>
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

}  // namespace trireme::optim
