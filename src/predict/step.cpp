// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/step.hpp"

#include "trireme/base/format.hpp"
#include "trireme/predict/timeline.hpp"

#include "collective.hpp"
#include "layer_operations.hpp"
#include "operation_costs.hpp"
#include "replay.hpp"
#include "stage_plan.hpp"
#include "step_sizes.hpp"

#include <algorithm>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

namespace trireme::predict {
namespace {

constexpr double milliseconds = 1000;

/// Ranks of each stage that are simulated: of so many of each of these data-parallel replicas.
struct Simulated {
  std::vector<int> replicas;
  int team = 1;
  /// [replica]: how many are equal to it, itself included.
  std::vector<int> alike;
};

int rank_of(const Degrees& degrees, int stage, int replica, int member) {
  return (stage * degrees.data + replica) * degrees.tensor * degrees.context + member;
}

/// [stage]: whether a message from it to the next one, or from the last to the first, leaves its
/// node. Nothing else tells data-parallel ranks apart.
std::vector<bool> crossings(const Degrees& degrees, const Placement& placement, int replica,
                            int member) {
  std::vector<bool> result;
  for (int stage = 0; stage < degrees.pipeline; ++stage) {
    const int next = (stage + 1) % degrees.pipeline;
    result.push_back(placement.crosses(rank_of(degrees, stage, replica, member),
                                       rank_of(degrees, next, replica, member)));
  }
  return result;
}

Simulated all_ranks(const Degrees& degrees) {
  std::vector<int> replicas(static_cast<std::size_t>(degrees.data));
  std::iota(replicas.begin(), replicas.end(), 0);
  std::vector<int> alike(replicas.size(), 1);
  return {std::move(replicas), degrees.tensor * degrees.context, std::move(alike)};
}

/// One replica of those whose ranks' messages take the same ways; of a team whose ranks' do, one.
Simulated distinct_ranks(const Degrees& degrees, const Placement& placement) {
  const int team = degrees.tensor * degrees.context;
  struct Equal {
    int first;
    int count = 0;
  };
  std::map<std::vector<std::vector<bool>>, Equal> equal;
  bool is_team_equal = true;
  for (int replica = 0; replica < degrees.data; ++replica) {
    std::vector<std::vector<bool>> ways;
    for (int member = 0; member < team; ++member) {
      ways.push_back(crossings(degrees, placement, replica, member));
      is_team_equal = is_team_equal && ways.back() == ways.front();
    }
    ++equal.try_emplace(std::move(ways), Equal{replica}).first->second.count;
  }
  std::vector<Equal> sets;
  for (const auto& [ways, set] : equal) sets.push_back(set);
  std::sort(sets.begin(), sets.end(),
            [](const Equal& one, const Equal& other) { return one.first < other.first; });
  Simulated simulated{.replicas = {}, .team = is_team_equal ? 1 : team, .alike = {}};
  for (const auto& set : sets) {
    simulated.replicas.push_back(set.first);
    simulated.alike.push_back(set.count);
  }
  return simulated;
}

std::vector<SimulatedRank> simulated_ranks(const Degrees& degrees, const Placement& placement,
                                           const Simulated& count) {
  const int replicas = static_cast<int>(count.replicas.size());
  const int in_stage = replicas * count.team;
  std::vector<SimulatedRank> ranks;
  for (int stage = 0; stage < degrees.pipeline; ++stage) {
    for (int place = 0; place < replicas; ++place) {
      const int replica = count.replicas[static_cast<std::size_t>(place)];
      for (int member = 0; member < count.team; ++member) {
        const int own = static_cast<int>(ranks.size());
        const int rank = rank_of(degrees, stage, replica, member);
        const int after = (stage + 1) % degrees.pipeline * in_stage;
        const int before = (stage + degrees.pipeline - 1) % degrees.pipeline * in_stage;
        const int within = own - stage * in_stage;
        ranks.push_back({.stage = stage,
                         .rank = rank,
                         .team = stage * replicas + place,
                         // Context-parallel ranks have the same parameters, too.
                         .data_group = stage * degrees.tensor + member % degrees.tensor,
                         .node = placement.node_of(rank),
                         .before = before + within,
                         .after = after + within});
      }
    }
  }
  return ranks;
}

base::Status check_micro_batches(const Workload& workload) {
  if (workload.shape.layers < 1 || workload.micro_batches.count < 1) {
    return base::usage_failure("a step has a layer and a micro-batch at least; give both");
  }
  return {};
}

base::Status check_length(const StepPrediction& prediction) {
  constexpr double day = 24 * 3600;
  if (seconds_of(prediction.total()) <= longest_step_days * day) return {};
  return base::usage_failure(base::format(
      "a step takes {:.3g} days (longer than {} is no step that anyone runs); use more "
      "ranks, a smaller train.global_batch, or see the rates and times of the machine "
      "file",
      seconds_of(prediction.total()) / day, longest_step_days));
}

/// Rows without spans, of the ranks that are simulated.
std::vector<TimelineRow> timeline_rows(const std::vector<SimulatedRank>& ranks,
                                       const Simulated& count, int whole_team) {
  std::vector<TimelineRow> rows;
  for (const auto& each : ranks) {
    const auto place = static_cast<std::size_t>(each.team) % count.replicas.size();
    rows.push_back({each.stage, each.rank, count.alike[place] * whole_team / count.team});
  }
  return rows;
}

base::Result<StepPrediction> simulate(const Machine& machine, const Workload& workload,
                                      Folding folding, Timeline* timeline) {
  if (const auto status = check_micro_batches(workload); !status) return status.failure();
  const auto& degrees = workload.degrees;
  const auto lists = lists_of(workload);
  if (!lists) return lists.failure();

  const int world_size = degrees.world_size();
  const Placement placement(machine, world_size);
  const auto use = core_use(machine, world_size);
  const Links links(machine, placement.node_size());
  const OperationCosts costs(machine, workload.program.precision, use.node_share);
  const LayerOperations operations(machine, workload, placement, costs, links);
  const DataExchange data(workload, placement, links);
  const auto norm = norm_time(links, placement, world_size);
  const auto plans = plan_stages(workload, operations, costs, data, *lists, norm);

  // Ranks that share cores are not equal: they take turns.
  const bool all = folding == Folding::none || use.cores > 0;
  const auto count = all ? all_ranks(degrees) : distinct_ranks(degrees, placement);
  const double bytes = message_bytes(workload, costs);
  const auto inside = links.message(bytes, false);
  const auto between = links.message(bytes, true);
  const bool has_tiles = machine.tiles.processors > 0;
  constexpr std::int64_t thousand = 1000;
  auto ranks = simulated_ranks(degrees, placement, count);
  if (timeline != nullptr) {
    timeline->rows = timeline_rows(ranks, count, degrees.tensor * degrees.context);
  }
  const auto prediction = replay(
      {.schedule = lists->schedule,
       .plans = plans,
       .ranks = std::move(ranks),
       .teams = degrees.pipeline * static_cast<int>(count.replicas.size()),
       .data_groups = degrees.pipeline * degrees.tensor,
       .message = [&](int from, int to) { return placement.crosses(from, to) ? between : inside; },
       .overlaps_messages = workload.program.overlaps_messages,
       // Where cores compute, the thread that computes moves the data, too.
       .contention = has_tiles ? thousand * machine.tiles.for_collectives / machine.tiles.processors
                               : thousand,
       .cores = use.cores,
       .recorder = Recorder(timeline == nullptr ? nullptr : &timeline->rows)});
  if (const auto status = check_length(prediction); !status) return status.failure();
  return prediction;
}

}  // namespace

Time Parts::total() const {
  return std::accumulate(times_.begin(), times_.end(), Time::zero());
}

base::Result<StepPrediction> predict_step(const Machine& machine, const Workload& workload,
                                          Folding folding) {
  return simulate(machine, workload, folding, nullptr);
}

base::Result<Timeline> step_timeline(const Machine& machine, const Workload& workload) {
  Timeline timeline;
  const auto step = simulate(machine, workload, Folding::equal_ranks, &timeline);
  if (!step) return step.failure();
  timeline.seconds = seconds_of(step->total());
  return timeline;
}

std::string text(const StepPrediction& prediction) {
  std::string result =
      base::format("step {:.1f} ms", milliseconds * seconds_of(prediction.total()));
  std::string_view separator = ": ";
  for (std::size_t part = 0; part < part_names.size(); ++part) {
    const auto seconds = seconds_of(prediction.parts[static_cast<Part>(part)]);
    result += base::format("{}{} {:.1f}", separator, part_names[part], milliseconds * seconds);
    separator = ", ";
  }
  return result + "\n";
}

base::Json to_json(const StepPrediction& prediction) {
  base::Json parts = base::Json::object();
  for (std::size_t part = 0; part < part_names.size(); ++part) {
    parts[std::string(part_names[part])] = seconds_of(prediction.parts[static_cast<Part>(part)]);
  }
  return {{"seconds", seconds_of(prediction.total())}, {"parts", parts}};
}

}  // namespace trireme::predict
