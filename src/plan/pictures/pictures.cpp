// SPDX-License-Identifier: Apache-2.0
#include "trireme/plan/pictures.hpp"

#include "trireme/engine/choose_recompute.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/plan/search.hpp"
#include "trireme/plan/time_plan.hpp"

#include "drawings.hpp"
#include "plan/search/objective.hpp"

#include <algorithm>
#include <optional>
#include <utility>

namespace trireme::plan {
namespace {

using layout::Axis;

/// Sizes beyond the plan's, each twice the one before.
constexpr int most_doublings = 5;

/// Numbers of data-parallel ranks: those of the plan halved while they are even, and doubled.
std::vector<int> replica_counts(const layout::Mesh& mesh) {
  const int data = mesh.degree(Axis::data);
  const int pipeline_ranks = mesh.world_size() / data;
  std::vector<int> counts{data};
  while (counts.front() % 2 == 0) counts.insert(counts.begin(), counts.front() / 2);
  for (int doubling = 0; doubling < most_doublings; ++doubling) {
    if (counts.back() > most_searched_ranks / 2 / pipeline_ranks) break;
    counts.push_back(2 * counts.back());
  }
  return counts;
}

/// The plan's layout on other sizes.
class Scaling {
 public:
  Scaling(const MemoryPlan& plan, const schema::Options& keys, const predict::Machine& machine)
      : plan_(plan), keys_(keys), machine_(machine), mesh_(plan.options.sharding.mesh) {}

  std::vector<ScaledStep> strong() const {
    const auto batch = engine::global_batch(plan_.options.schedule, mesh_);
    return steps([batch](int) { return batch; });
  }
  std::vector<ScaledStep> weak() const {
    const auto batch =
        engine::global_batch(plan_.options.schedule, mesh_) / mesh_.degree(Axis::data);
    return steps([batch](int replicas) { return batch * replicas; });
  }

 private:
  template <typename BatchOf>
  std::vector<ScaledStep> steps(const BatchOf& batch_of) const {
    std::vector<ScaledStep> found;
    for (const int replicas : replica_counts(mesh_)) {
      if (auto step = step_of(replicas, batch_of(replicas))) found.push_back(*std::move(step));
    }
    if (found.empty()) return found;
    const auto rate = [](const ScaledStep& step) {
      return static_cast<double>(step.global_batch) / step.seconds / step.ranks;
    };
    const double first = rate(found.front());
    for (auto& step : found) step.efficiency = rate(step) / first;
    return found;
  }

  /// Nothing where a rule forbids it, or it has no predicted step.
  std::optional<ScaledStep> step_of(int replicas, std::int64_t batch) const {
    auto keys = keys_;
    keys.parallel.data.reset();
    keys.train.global_batch = batch;
    const auto mesh =
        layout::Mesh::of(mesh_.degree(Axis::pipeline), replicas, mesh_.degree(Axis::tensor));
    const auto given = engine::options_from(keys, plan_.options.model, mesh, base::Rank{0});
    if (!given) return std::nullopt;
    // As in the plan, where auto has chosen by memory.
    const auto options = engine::with_recompute(*given, plan_.options.memory.recompute);
    const auto step = predict::predict_step(machine_, workload_of(options, machine_));
    if (!step) return std::nullopt;
    const auto size = run_size(keys, plan_.options.model, mesh.world_size());
    return ScaledStep{.ranks = mesh.world_size(),
                      .global_batch = batch,
                      .seconds = predict::seconds_of(step->total()),
                      .run = estimate_run(machine_, Tenure::own, size, *step)};
  }

  const MemoryPlan& plan_;
  const schema::Options& keys_;
  const predict::Machine& machine_;
  layout::Mesh mesh_;
};

std::vector<engine::MemoryUse> memory_by_stage(const MemoryPlan& plan) {
  const auto& mesh = plan.options.sharding.mesh;
  std::vector<engine::MemoryUse> largest(static_cast<std::size_t>(mesh.degree(Axis::pipeline)));
  for (const auto& rank : plan.ranks) {
    auto& stage = largest[static_cast<std::size_t>(mesh.coordinate(Axis::pipeline, rank.rank))];
    if (engine::total_bytes(rank.bytes) > engine::total_bytes(stage)) stage = rank.bytes;
  }
  return largest;
}

base::Json timeline_json(const predict::Timeline& timeline) {
  auto rows = base::Json::array();
  for (const auto& row : timeline.rows) {
    auto spans = base::Json::array();
    for (const auto& span : row.spans) {
      base::Json json{{"kind", name(span.kind)}, {"begin", span.begin}, {"end", span.end}};
      if (span.micro_batch >= 0) {
        json["micro_batch"] = span.micro_batch;
        json["virtual_stage"] = span.virtual_stage;
      }
      if (span.tensor > 0) json["tensor"] = span.tensor;
      spans.push_back(std::move(json));
    }
    rows.push_back(
        {{"stage", row.stage}, {"rank", row.rank}, {"alike", row.alike}, {"spans", spans}});
  }
  return {{"seconds", timeline.seconds}, {"rows", rows}};
}

base::Json scaling_json(const std::vector<ScaledStep>& steps) {
  auto json = base::Json::array();
  for (const auto& step : steps) {
    json.push_back({{"ranks", step.ranks},
                    {"global_batch", step.global_batch},
                    {"seconds", step.seconds},
                    {"efficiency", step.efficiency},
                    {"run", to_json(step.run)}});
  }
  return json;
}

}  // namespace

base::Result<Pictures> pictures_of(const MemoryPlan& plan, const schema::Options& keys,
                                   const predict::Machine& machine) {
  if (auto status = check_predicted(plan.options); !status.ok()) return status.failure();
  auto timeline = predict::step_timeline(machine, workload_of(plan.options, machine));
  if (!timeline) return timeline.failure();
  const Scaling scaling(plan, keys, machine);
  const auto room = room_for(plan.options, memory_for_arrays(machine, keys));
  return Pictures{.machine = machine.name,
                  .layout = plan.options.sharding.mesh.text(),
                  .timeline = *std::move(timeline),
                  .strong = scaling.strong(),
                  .weak = scaling.weak(),
                  .memory = memory_by_stage(plan),
                  .room = machine.node.computes_on_cores() ? 0 : room};
}

std::vector<std::size_t> pareto_front(const std::vector<ScaledStep>& steps) {
  std::vector<std::size_t> order;
  for (std::size_t index = 0; index < steps.size(); ++index) {
    if (steps[index].run.ends() && steps[index].run.cost) order.push_back(index);
  }
  std::stable_sort(order.begin(), order.end(), [&](std::size_t one, std::size_t other) {
    return std::pair(steps[one].run.hours, *steps[one].run.cost) <
           std::pair(steps[other].run.hours, *steps[other].run.cost);
  });
  std::vector<std::size_t> front;
  for (const auto index : order) {
    if (front.empty() || *steps[index].run.cost < *steps[front.back()].run.cost) {
      front.push_back(index);
    }
  }
  return front;
}

std::vector<PictureFile> picture_files(const Pictures& pictures) {
  std::vector<PictureFile> files{{"timeline.svg", timeline_drawing(pictures)},
                                 {"strong-scaling.svg", strong_drawing(pictures)},
                                 {"weak-scaling.svg", weak_drawing(pictures)},
                                 {"memory.svg", memory_drawing(pictures)}};
  if (pictures.has_prices()) files.push_back({"pareto.svg", pareto_drawing(pictures)});
  return files;
}

base::Json to_json(const Pictures& pictures) {
  auto memory = base::Json::array();
  for (const auto& bytes : pictures.memory) {
    base::Json stage = base::Json::object();
    for (std::size_t purpose = 0; purpose < engine::device_purposes.size(); ++purpose) {
      stage[device::name(engine::device_purposes[purpose])] = bytes[purpose];
    }
    stage["total"] = engine::total_bytes(bytes);
    memory.push_back(std::move(stage));
  }
  base::Json json{{"layout", pictures.layout},
                  {"timeline", timeline_json(pictures.timeline)},
                  {"strong_scaling", scaling_json(pictures.strong)},
                  {"weak_scaling", scaling_json(pictures.weak)},
                  {"memory", memory}};
  if (pictures.room > 0) json["memory_room"] = pictures.room;
  return json;
}

}  // namespace trireme::plan
