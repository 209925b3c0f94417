// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/options.hpp"
#include "trireme/plan/search.hpp"
#include "trireme/predict/bound.hpp"
#include "trireme/predict/workload.hpp"

#include "frontier.hpp"
#include "kept.hpp"
#include "layout_memory.hpp"
#include "matrix_owners.hpp"

#include <cstddef>
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

/// Private to the room.
namespace trireme::plan {

/// A layout that fits, simulated.
struct Simulated {
  LayoutChoice choice;
  predict::StepPrediction step;
  Score score;
};

/// A layout that does not fit, or whose step is too long.
struct Misfit {
  LayoutChoice choice;
  std::size_t bytes = 0;
  std::size_t room = 0;

  std::size_t too_much() const { return bytes > room ? bytes - room : 0; }
  bool has_room() const { return too_much() == 0; }
};

/// Search through the layouts of one model on one machine.
class Searcher {
 public:
  /// Which layouts are looked at.
  struct Filter {
    /// Whether any with these settings is, whatever it computes again.
    std::function<bool(const LayoutChoice&)> arrangement;
    std::function<bool(const LayoutChoice&)> layout;
  };

  Searcher(const schema::Options& keys, const model::ModelConfig& model,
           const predict::Machine& machine, const SearchRequest& request,
           std::optional<inference::SampleTask> samples);

  /// Best layouts that fit, in ascending order of their scores: `top` arrangements, and all that
  /// are within the margin of the first.
  std::vector<Simulated> best(const Filter& filter, std::size_t top, double margin);
  /// A layout that needs little memory among those of the filter, whether it fits or not; nothing
  /// where no rule allows any.
  std::optional<Misfit> smallest(const Filter& filter);

  predict::Workload workload(const LayoutChoice& choice);
  std::vector<std::size_t> memory_by_stage(const LayoutChoice& choice);
  std::size_t limit() const { return limit_; }
  std::size_t legal() const { return arrangements_.size(); }
  std::size_t simulated() const { return simulated_.size(); }
  std::size_t measured() const { return memory_.measured(); }
  const predict::Machine& machine() const { return machine_; }
  Score score(const LayoutChoice& choice, const StepSeconds& seconds) const {
    return score_of(request_.objective, machine_, choice.ranks, seconds);
  }

 private:
  /// A legal layout that computes nothing again, and the workload that it is.
  struct Arrangement {
    LayoutChoice choice;
    predict::Workload workload;
    Score bound;
  };
  /// Settings of layouts beside micro-batch and recomputation, and whether FP8 copies are kept.
  using Family = std::pair<LayoutChoice::Order, bool>;
  struct Outcome {
    std::optional<predict::StepPrediction> step;
    bool has_room = true;
  };

  base::Result<engine::EngineOptions> options_of(const LayoutChoice& choice);
  /// The same, but for who owns matrices that an optimizer updates whole.
  base::Result<engine::EngineOptions> options_without_owners(const LayoutChoice& choice) const;
  /// Score of a bound; that of a step that is too long is the worst.
  Score bound_score(const LayoutChoice& choice, predict::Time bound) const;
  void add_arrangements(int ranks, const std::vector<layout::ScheduleKind>& schedules);
  /// Sets that are compared, of stages of at most so many layers.
  std::vector<config::Recompute> recompute_sets(int stage_layers) const;
  std::vector<Candidate> with_recompute(std::size_t arrangement);
  /// Layouts to judge at once: the next that may still be among the best.
  std::vector<Candidate> next_wave(Frontier& frontier, const Filter& filter,
                                   const std::function<bool(const Score&)>& matters);
  Outcome judge(const LayoutChoice& choice);
  /// Layouts of which more micro-batch or less recomputation takes no less memory.
  Family family_of(LayoutChoice choice) const;
  bool is_without_room(const LayoutChoice& choice) const;
  /// Whether the layout does not fit, whatever it computes again.
  bool has_no_room(LayoutChoice choice);

  schema::Options keys_;
  const model::ModelConfig& model_;
  const predict::Machine& machine_;
  SearchRequest request_;
  KeptSettings kept_;
  MatrixOwners owners_;
  LayoutMemory memory_;
  std::size_t limit_ = 0;
  predict::LowerBounds bounds_;
  /// In ascending order of bounds.
  std::vector<Arrangement> arrangements_;
  /// Sets one of which leaves least in memory.
  std::vector<config::Recompute> smallest_sets_;
  /// Layouts that do not fit.
  std::map<Family, std::vector<LayoutChoice>> misfits_;
  std::map<LayoutChoice::Order, predict::StepPrediction> simulated_;
};

}  // namespace trireme::plan
