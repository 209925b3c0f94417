// SPDX-License-Identifier: Apache-2.0
#include "searcher.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/plan/time_plan.hpp"

#include "candidates.hpp"
#include "in_parallel.hpp"

#include <algorithm>
#include <limits>
#include <memory>
#include <tuple>
#include <utility>

namespace trireme::plan {
namespace {

/// Layouts judged at a time, whatever the number of threads: what is looked at does not depend on
/// it.
constexpr std::size_t wave_size = 16;
/// Worse than that of any step.
constexpr Score worst_score{std::numeric_limits<double>::infinity(),
                            std::numeric_limits<double>::infinity()};

LayoutChoice degrees_of(const LayoutChoice& choice) {
  return {.ranks = choice.ranks,
          .tensor = choice.tensor,
          .pipeline = choice.pipeline,
          .micro_batch = -1,
          .zero_level = choice.zero_level == 3 ? 3 : 0};
}

/// Layers of the stage that has most.
int largest_stage(const predict::Workload& workload) {
  const auto& micro = workload.micro_batches;
  const layout::Placement placement{workload.degrees.pipeline, micro.virtual_stages,
                                    layout::placement_kind(micro.schedule)};
  std::vector<int> layers(static_cast<std::size_t>(placement.stages));
  for (std::size_t position = 0; position < micro.stage_layers.size(); ++position) {
    const auto stage = placement.place_of(static_cast<int>(position)).stage;
    layers[static_cast<std::size_t>(stage)] += micro.stage_layers[position];
  }
  return *std::max_element(layers.begin(), layers.end());
}

/// Puts a layout in its place among those found: of its arrangement it stays alone if it is better.
void keep_best(std::vector<Simulated>& found, const Simulated& one) {
  const auto same_arrangement = [&](const Simulated& other) {
    auto as_this = other.choice;
    as_this.recompute = one.choice.recompute;
    return as_this == one.choice;
  };
  const auto at = std::find_if(found.begin(), found.end(), same_arrangement);
  if (at == found.end()) {
    found.push_back(one);
  } else if (one.score < at->score) {
    *at = one;
  }
  std::sort(found.begin(), found.end(), [](const Simulated& a, const Simulated& b) {
    return a.score != b.score ? a.score < b.score : a.choice.order() < b.choice.order();
  });
}

}  // namespace

Searcher::Searcher(const schema::Options& keys, const model::ModelConfig& model,
                   const predict::Machine& machine, const SearchRequest& request,
                   std::optional<inference::SampleTask> samples)
    : keys_(keys),
      model_(model),
      machine_(machine),
      request_(request),
      kept_(keys_, request.kept),
      owners_(keys_, model),
      memory_(std::move(samples), machine.node.computes_on_cores() ? LayoutMemory::Owner::node
                                                                   : LayoutMemory::Owner::rank),
      limit_(memory_for_arrays(machine, keys)),
      bounds_(machine),
      smallest_sets_(most_discarded_sets(keys.numerics.precision)) {
  if (kept_.recompute()) smallest_sets_ = {*kept_.recompute()};
  const auto schedules = priced_schedules();
  for (const int ranks : worlds_of(machine, request)) add_arrangements(ranks, schedules);
  std::sort(arrangements_.begin(), arrangements_.end(),
            [](const Arrangement& a, const Arrangement& b) {
              return a.bound != b.bound ? a.bound < b.bound : a.choice.order() < b.choice.order();
            });
}

base::Result<engine::EngineOptions> Searcher::options_of(const LayoutChoice& choice) {
  return owners_.options_of(choice);
}

base::Result<engine::EngineOptions> Searcher::options_without_owners(
    const LayoutChoice& choice) const {
  auto keys = with_layout(keys_, choice);
  // Whichever it is: to choose one takes as long as a simulation.
  if (!keys.optimizer.assignment) {
    const bool has_equal_shards = choice.zero_level < 3;
    keys.optimizer.assignment =
        has_equal_shards ? layout::Assignment::padded : layout::Assignment::contiguous;
  }
  return engine::options_from(keys, model_, choice.mesh(), base::Rank{0});
}

predict::Workload Searcher::workload(const LayoutChoice& choice) {
  return owners_.workload(base::value_or_throw(options_of(choice)), machine_);
}

std::vector<std::size_t> Searcher::memory_by_stage(const LayoutChoice& choice) {
  return memory_.largest_by_stage(base::value_or_throw(options_of(choice)));
}

Score Searcher::bound_score(const LayoutChoice& choice, predict::Time bound) const {
  constexpr double day = 24 * 3600;
  const auto seconds = seconds_of(bound, machine_.site);
  return seconds.all <= predict::longest_step_days * day ? score(choice, seconds) : worst_score;
}

void Searcher::add_arrangements(int ranks, const std::vector<layout::ScheduleKind>& schedules) {
  auto choices = legal_layouts(keys_, model_, ranks, schedules);
  std::erase_if(choices, [this](const LayoutChoice& choice) { return !kept_.allows(choice); });
  std::vector<std::unique_ptr<predict::LowerBounds>> bounds;
  for (int thread = 0; thread < request_.threads; ++thread) {
    bounds.push_back(std::make_unique<predict::LowerBounds>(machine_));
  }
  std::vector<std::optional<Arrangement>> made(choices.size());
  in_parallel(choices.size(), request_.threads, [&](std::size_t index, int thread) {
    const auto& choice = choices[index];
    const auto options = options_without_owners(choice);
    // Rules that are not of the arrangement: widths of fp8, heads that attention takes.
    if (!options) return;
    auto workload = workload_without_matrices(*options, machine_);
    const auto bound = bounds[static_cast<std::size_t>(thread)]->of(workload);
    made[index] = Arrangement{choice, std::move(workload), bound_score(choice, bound)};
  });
  for (auto& each : made) {
    if (each) arrangements_.push_back(*std::move(each));
  }
}

std::vector<config::Recompute> Searcher::recompute_sets(int stage_layers) const {
  if (kept_.recompute()) return {*kept_.recompute()};
  return recompute_choices(stage_layers);
}

std::vector<Candidate> Searcher::with_recompute(std::size_t index) {
  const auto& arrangement = arrangements_[index];
  auto workload = arrangement.workload;
  std::vector<Candidate> candidates;
  for (const auto& recompute : recompute_sets(largest_stage(workload))) {
    Candidate candidate{arrangement.bound, index, arrangement.choice};
    candidate.choice.recompute = recompute;
    if (recompute != config::Recompute{}) {
      workload.program.recompute = recompute;
      candidate.bound = bound_score(candidate.choice, bounds_.of(workload));
    }
    candidates.push_back(candidate);
  }
  return candidates;
}

Searcher::Family Searcher::family_of(LayoutChoice choice) const {
  const bool keeps_copies =
      keys_.numerics.precision == config::Precision::fp8 &&
      engine::keeps_weight_copies(base::value_or_throw(options_without_owners(choice)));
  // Units that take all micro-batches in turn hold as much, however these are cut.
  if (choice.zero_level < 3 || choice.pipeline > 1) choice.micro_batch = 0;
  choice.recompute = {};
  return {choice.order(), keeps_copies};
}

bool Searcher::is_without_room(const LayoutChoice& choice) const {
  const auto of_family = misfits_.find(family_of(choice));
  if (of_family == misfits_.end()) return false;
  return std::any_of(of_family->second.begin(), of_family->second.end(),
                     [&](const LayoutChoice& misfit) {
                       return misfit.micro_batch <= choice.micro_batch &&
                              discards_no_less(misfit.recompute, choice.recompute);
                     });
}

bool Searcher::has_no_room(LayoutChoice choice) {
  for (const auto& recompute : smallest_sets_) {
    choice.recompute = recompute;
    if (is_without_room(choice)) continue;
    const auto options = base::value_or_throw(options_without_owners(choice));
    if (memory_.least(options) <= room_for(options, limit_)) return false;
  }
  return true;
}

Searcher::Outcome Searcher::judge(const LayoutChoice& choice) {
  const auto without_owners = base::value_or_throw(options_without_owners(choice));
  const auto room = room_for(without_owners, limit_);
  if (memory_.least(without_owners) > room) return {.step = {}, .has_room = false};
  const auto options = base::value_or_throw(options_of(choice));
  if (memory_.needed(options, room) > room) return {.step = {}, .has_room = false};
  const auto step = predict::predict_step(machine_, owners_.workload(options, machine_));
  // A step that is longer than anyone waits has none.
  if (!step) return {};
  return {.step = *step};
}

std::vector<Candidate> Searcher::next_wave(Frontier& frontier, const Filter& filter,
                                           const std::function<bool(const Score&)>& matters) {
  std::vector<Candidate> wave;
  while (wave.size() < wave_size) {
    const auto index = frontier.arrangement();
    if (frontier.has_arrangement() &&
        (!frontier.has_candidate() || arrangements_[index].bound <= frontier.candidate().bound)) {
      const auto& next = arrangements_[index];
      if (!matters(next.bound)) return wave;
      frontier.pop_arrangement();
      if (!filter.arrangement(next.choice)) continue;
      if (has_no_room(next.choice)) continue;
      for (const auto& candidate : with_recompute(index)) {
        if (filter.layout(candidate.choice)) frontier.push(candidate);
      }
      continue;
    }
    if (!frontier.has_candidate() || !matters(frontier.candidate().bound)) return wave;
    const auto candidate = frontier.candidate();
    frontier.pop_candidate();
    if (frontier.is_beaten(candidate) || is_without_room(candidate.choice)) continue;
    wave.push_back(candidate);
  }
  return wave;
}

std::vector<Simulated> Searcher::best(const Filter& filter, std::size_t top, double margin) {
  std::vector<Simulated> found;
  Frontier frontier(arrangements_.size());
  const auto matters = [&](const Score& bound) {
    if (bound == worst_score) return false;
    if (found.size() < top) return true;
    return bound <= std::max(found[top - 1].score, found.front().score.with_margin(margin));
  };
  for (;;) {
    const auto wave = next_wave(frontier, filter, matters);
    if (wave.empty()) return found;
    std::vector<Outcome> outcomes(wave.size());
    in_parallel(wave.size(), request_.threads,
                [&](std::size_t index, int) { outcomes[index] = judge(wave[index].choice); });
    for (std::size_t index = 0; index < wave.size(); ++index) {
      const auto& choice = wave[index].choice;
      const auto& outcome = outcomes[index];
      if (!outcome.has_room) misfits_[family_of(choice)].push_back(choice);
      if (!outcome.step) continue;
      simulated_.try_emplace(choice.order(), *outcome.step);
      frontier.add_fit(wave[index]);
      keep_best(found, {choice, *outcome.step, score(choice, seconds_of(*outcome.step))});
    }
  }
}

std::optional<Misfit> Searcher::smallest(const Filter& filter) {
  // The arrangement that holds least, of each pair of degrees.
  std::map<LayoutChoice::Order, LayoutChoice> least;
  const auto rank = [](const LayoutChoice& choice) {
    return std::tuple(choice.micro_batch, choice.virtual_stages, -choice.zero_level,
                      !choice.sequence, choice.schedule == layout::ScheduleKind::gpipe);
  };
  for (const auto& arrangement : arrangements_) {
    const auto& choice = arrangement.choice;
    if (!filter.arrangement(choice)) continue;
    const auto [found, is_new] = least.try_emplace(degrees_of(choice).order(), choice);
    if (!is_new && rank(choice) < rank(found->second)) found->second = choice;
  }
  const auto& sets = smallest_sets_;
  for (const bool most_alone : {true, false}) {
    std::optional<Misfit> smallest;
    for (auto [degrees, choice] : least) {
      for (const auto& recompute : recompute_sets(1)) {
        choice.recompute = recompute;
        if (most_alone && std::count(sets.begin(), sets.end(), recompute) == 0) continue;
        if (!filter.layout(choice)) continue;
        const auto options = base::value_or_throw(options_of(choice));
        const auto bytes = memory_.needed(options, std::numeric_limits<std::size_t>::max());
        if (smallest && smallest->bytes <= bytes) continue;
        smallest = Misfit{choice, bytes, room_for(options, limit_)};
      }
    }
    if (smallest) return smallest;
  }
  return std::nullopt;
}

}  // namespace trireme::plan
