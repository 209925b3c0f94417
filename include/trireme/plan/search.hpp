// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/model/model_config.hpp"
#include "trireme/plan/layout_choice.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/predict/step.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::plan {

/// Figure that a layout is to have least of: seconds of a step, money for it, its CO2, or ranks.
enum class Objective { time, cost, carbon, gpus };
inline constexpr std::array<std::string_view, 4> objective_names{"time", "cost", "carbon", "gpus"};

struct SearchRequest {
  /// In all; with other objectives than time at most so many.
  int ranks = 1;
  Objective objective = Objective::time;
  int top = 5;
  /// Layouts that are predicted to differ by no more than this part are called ties.
  double margin = 0.03;
  /// Layouts that are to be explained, too; empty for none.
  std::string why;
  /// Whether layouts that people try are explained, too.
  bool explains_known = true;
  /// Keys of settings that stay as they are configured; the others are chosen.
  std::vector<std::string> kept = {};
  int threads = 2;
};

/// A layout with its step, or with what it lacks.
struct JudgedLayout {
  LayoutChoice layout;
  /// Name that people have for it; empty of those that are only numbers.
  std::string name;
  /// Nothing where it does not fit.
  std::optional<predict::StepPrediction> step;
  /// [stage]: bytes of its largest rank.
  std::vector<std::size_t> memory_bytes;
  /// Price of a step, where the machine's file has one of nodes.
  std::optional<double> cost;
  /// CO2 of a step, where the file has power and carbon of its site.
  std::optional<double> kg_co2;
  /// From 1; 0 of those that no rank was asked for.
  int rank = 0;
  /// Empty for the best.
  std::string lost_because;
};

struct SearchResult {
  std::string machine;
  Objective objective = Objective::time;
  double margin = 0;
  /// Layouts that no rule forbids, whatever they compute again; those that were simulated; kinds of
  /// ranks whose memory was measured.
  std::size_t legal = 0;
  std::size_t simulated = 0;
  std::size_t measured = 0;
  /// Layouts within the margin of the best, which is one of them.
  std::size_t ties = 0;
  /// Best first; equal arrangements that compute more again are left out.
  std::vector<JudgedLayout> best;
  /// Layouts that people would try.
  std::vector<JudgedLayout> known;
  std::vector<JudgedLayout> asked;
  /// Values of the configuration, as the search took them.
  schema::Options keys;
};

/// Ranks on which a search may be.
inline constexpr int most_searched_ranks = 1 << 20;

/// Ranks of so many nodes of a machine with GPUs, all of them used. The failure (usage) says why
/// there are none, or too many.
base::Result<int> ranks_of_nodes(const predict::Machine& machine, int nodes);

/// Compares all legal layouts of a model on a machine: memory as plan_memory() has it, steps as
/// predict_step() does, in ascending order of a bound that no step is shorter than. The failure
/// (usage) names the key that a search cannot do without, or says that no layout fits.
base::Result<SearchResult> search_layouts(const config::Config& config,
                                          const model::ModelConfig& model,
                                          const predict::Machine& machine,
                                          const SearchRequest& request);

/// Tables of the best and of what people would try, and lines to paste.
std::string text(const SearchResult& result);
/// {"machine", "objective", "margin", "legal", "simulated", "layouts": [{"layout", "settings",
/// "seconds", "memory_bytes" by stage, "parts", "cost", "kg_co2e", "rank", "tie", "lost_because"}],
/// "known", "asked": the same with "name"}.
base::Json to_json(const SearchResult& result);

}  // namespace trireme::plan
