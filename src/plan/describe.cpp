// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/layout/chunk_buffers.hpp"
#include "trireme/layout/picture.hpp"
#include "trireme/plan/memory_plan.hpp"

#include <algorithm>
#include <array>

namespace trireme::plan {

using base::format;
using engine::device_purposes;
using layout::Axis;

namespace {

constexpr std::size_t column_width = 14;

const char* bubble_assumption(layout::ScheduleKind schedule) {
  return layout::splits_backward(schedule)
             ? "if stages take equally long, each half of backward as long as forward, and "
               "messages no time; recomputation and unequal halves make it larger"
             : "if stages take equally long, a backward twice a forward, and messages no time";
}

std::string cell(const std::string& text) {
  return format("{:>{}}", text, column_width);
}

/// Memory in the table: a device's, and its total; the host's behind it, where any is used.
enum class Shown { device, host_too };

Shown shown_in(const MemoryPlan& plan) {
  const bool uses_host = std::any_of(plan.ranks.begin(), plan.ranks.end(), [](const auto& rank) {
    return engine::offloaded_bytes(rank.bytes) > 0;
  });
  return uses_host ? Shown::host_too : Shown::device;
}

std::string cells(const engine::MemoryUse& bytes, Shown shown) {
  std::string text;
  for (std::size_t index = 0; index < device_purposes.size(); ++index) {
    text += cell(base::bytes_text(bytes[index]));
  }
  text += cell(base::bytes_text(engine::total_bytes(bytes)));
  if (shown == Shown::host_too) text += cell(base::bytes_text(engine::offloaded_bytes(bytes)));
  return text;
}

const char* precision_of(const engine::NumericsOptions& numerics) {
  return numerics.linear_forward == layers::LinearForward::e4m3 ? "fp8"
                                                                : device::name(numerics.dtype);
}

std::string heading(Shown shown) {
  std::string text = format("{:<14}", "rank");
  for (const auto purpose : device_purposes) text += cell(device::name(purpose));
  text += cell("total");
  if (shown == Shown::host_too) text += cell("on the host");
  return text + "\n";
}

/// [stage]: buffers of all chunks together.
std::vector<layout::ChunkBuffers> held_by_stages(const engine::ScheduleOptions& given, int stages) {
  const auto schedule = base::value_or_throw(
      layout::make_schedule(given.kind, stages, given.micro_batches, given.virtual_stages));
  std::vector<layout::ChunkBuffers> held;
  for (int stage = 0; stage < schedule.stages; ++stage) {
    auto& sum = held.emplace_back(layout::ChunkBuffers{.activations = 0, .operands = 0});
    for (const auto& chunk : layout::chunk_buffers(schedule, stage, layout::Passes::both)) {
      sum.activations += chunk.activations;
      sum.operands += chunk.operands;
      sum.left += chunk.left;
    }
  }
  return held;
}

/// Text about what stages hold between forward, backward_input and backward_weight; empty where
/// backward is one action.
std::string held_in_words(const engine::ScheduleOptions& schedule, int stages) {
  const bool is_split = layout::splits_backward(schedule.kind) && stages > 1;
  if (!is_split) return {};
  std::vector<int> activations;
  std::vector<int> operands;
  std::vector<int> left;
  for (const auto& stage : held_by_stages(schedule, stages)) {
    activations.push_back(stage.activations);
    operands.push_back(stage.operands);
    left.push_back(stage.left);
  }
  return format(
      "stages hold activations of {} micro-batches{}, of {} those that gradients of weights read, "
      "and of {} what else these wait for\n",
      base::join(activations, ","), schedule.virtual_stages == 1 ? "" : " of a chunk",
      base::join(operands, ","), base::join(left, ","));
}

/// Text about weights that are gathered when they are read; empty where each rank has its own.
std::string divided_in_words(const sharding::Options& sharding, int micro_batches) {
  if (sharding.reduces_micro_batches()) {
    return "ZeRO level 2: gradients are reduced into shards behind each micro-batch\n";
  }
  if (!sharding.divides_parameters()) return {};
  if (!sharding.takes_units_in_turn()) {
    return "ZeRO level 3: ranks hold shards of weights, and all gradients\n";
  }
  return format(
      "ZeRO level 3: ranks hold shards of weights and gradients; the table, each layer and the "
      "head take all {} micro-batches before the next\n",
      micro_batches);
}

/// Text about what stages wait for one another; a stage whose units take all micro-batches before
/// the next runs none of the schedules.
std::string schedule_in_words(const MemoryPlan& plan) {
  if (plan.options.sharding.takes_units_in_turn()) {
    return "one stage, whatever the schedule: no bubble\n";
  }
  const auto kind = plan.options.schedule.kind;
  return format("schedule {}: bubble {:.1f} % of a step ({})\n", layout::name(kind),
                plan.bubble_fraction * 100.0, bubble_assumption(kind));
}

std::string run_in_words(const MemoryPlan& plan) {
  const auto& options = plan.options;
  const auto& schedule = options.schedule;
  const auto& mesh = options.sharding.mesh;
  const int stages = mesh.degree(Axis::pipeline);
  std::string text = format(
      "{}, {:.1f} million parameters, {}; {} on {}\n", model::name(options.model.architecture),
      static_cast<double>(plan.parameter_count) / 1e6, precision_of(options.numerics), mesh.text(),
      base::counted(mesh.world_size(), "rank"));
  text += format("a step: {} tokens; each replica {} micro-batches of {} x {} tokens\n",
                 plan.tokens_per_step, schedule.micro_batches, schedule.micro_batch,
                 schedule.sequence_length);
  if (options.numerics.linear_forward == layers::LinearForward::e4m3) {
    text += engine::keeps_weight_copies(options)
                ? "FP8 copies of weights are made once a step and kept beside the parameters\n"
                : "FP8 copies of weights are made for each product, in the workspace\n";
  }
  text += divided_in_words(options.sharding, schedule.micro_batches);
  if (options.memory.optimizer_home == engine::Home::host) {
    text += "masters and optimizer state lie in host memory, and updates stream them in chunks\n";
  }
  for (std::size_t stage = 0; stage < plan.chosen.size(); ++stage) {
    text += format("stage {}: {}\n", stage, plan.chosen[stage].text());
  }
  if (plan.chosen.empty() && options.memory.recompute != layers::Recompute{}) {
    text += format("computed again in backward: {}\n", options.memory.recompute.text());
  }
  text += schedule_in_words(plan);
  text += held_in_words(schedule, stages);
  if (stages > 1) text += engine::stage_layers(options.model, schedule, stages).text() + "\n";
  if (plan.attention) text += plan.attention->sentence + "\n";
  return text;
}

/// Sets of activations that are computed again, a text for each stage.
base::Json recomputed_json(const MemoryPlan& plan) {
  const auto& options = plan.options;
  base::Json stages = base::Json::array();
  for (const auto& each : plan.chosen) stages.push_back(each.recompute.text());
  while (stages.size() < static_cast<std::size_t>(options.sharding.mesh.degree(Axis::pipeline))) {
    stages.push_back(options.memory.recompute.text());
  }
  return stages;
}

/// Table of ranks; neighbours with equal needs share a row.
std::string table(const MemoryPlan& plan) {
  const auto shown = shown_in(plan);
  auto text = heading(shown);
  for (std::size_t begin = 0; begin < plan.ranks.size();) {
    std::vector<base::Rank> alike;
    std::size_t end = begin;
    while (end < plan.ranks.size() && plan.ranks[end].bytes == plan.ranks[begin].bytes) {
      alike.push_back(plan.ranks[end].rank);
      ++end;
    }
    const auto& bytes = plan.ranks[begin].bytes;
    text += format("{:<14}{}\n", layout::ranks_text(alike), cells(bytes, shown));
    begin = end;
  }
  return text;
}

std::string libraries_text(const MemoryPlan& plan) {
  if (plan.libraries.empty()) return {};
  std::string text = "\nbeside that on each GPU: ";
  for (const auto& each : plan.libraries) {
    text += format("{} at most {}, ", each.library, base::bytes_text(each.bytes));
  }
  return text + "and the driver's context, which a run measures\n";
}

std::string snapshot_text(const MemoryPlan& plan) {
  std::size_t largest = 0;
  for (const auto& rank : plan.ranks) largest = std::max(largest, rank.snapshot_bytes);
  if (largest == 0) return {};
  return format(
      "\nbeside that on each rank's host: at most {} for copies of state, from which "
      "checkpoints are written while training goes on (checkpoint.asynchronous)\n",
      base::bytes_text(largest));
}

/// Memory that the arenas do not hold, because it does not depend on the run or is another's to
/// choose.
std::vector<std::string> not_counted(const MemoryPlan& plan) {
  std::vector<std::string> parts{
      "exchange buffers of process groups (shared memory: 1.5 MiB for each rank of a group; "
      "between nodes two of at most 8 MiB a group)",
      "what the process and its libraries are"};
  if (plan.libraries.empty()) {
    parts.emplace_back("packed operands and scratch of oneDNN");
    parts.emplace_back("blocks of a checkpoint while it is written or read");
  } else {
    parts.emplace_back(
        "of the host: copies of batches, 256 MiB of the rank's state at a time while a checkpoint "
        "is read, and 32 MiB while one is written and training waits");
  }
  return parts;
}

base::Json bytes_json(const engine::MemoryUse& bytes) {
  base::Json json;
  for (const auto purpose : engine::told_purposes(bytes)) {
    json[device::name(purpose)] = bytes[static_cast<std::size_t>(purpose)];
  }
  json["total"] = engine::total_bytes(bytes);
  return json;
}

}  // namespace

std::string text(const MemoryPlan& plan) {
  std::string text = run_in_words(plan) + "\n" + table(plan);
  const auto rest = libraries_text(plan) + snapshot_text(plan) +
                    format("\nnot counted: {}\n", base::join(not_counted(plan), "; "));
  if (plan.ranks.size() == 1) return text + rest;
  std::uint64_t all = 0;
  for (const auto& rank : plan.ranks) all += engine::total_bytes(rank.bytes);
  const auto& largest = plan.largest();
  text += format("\nlargest: rank {} with {}; all ranks together {}\n", largest.rank.value(),
                 base::bytes_text(engine::total_bytes(largest.bytes)), base::bytes_text(all));
  return text + rest;
}

base::Json to_json(const MemoryPlan& plan) {
  const auto& options = plan.options;
  const auto& schedule = options.schedule;
  const auto& mesh = options.sharding.mesh;
  base::Json degrees;
  for (const auto& axis : mesh.axes()) degrees[layout::short_name(axis.axis)] = axis.degree;
  base::Json ranks = base::Json::array();
  for (const auto& rank : plan.ranks) {
    base::Json coordinates;
    for (const auto& axis : mesh.axes()) {
      coordinates[layout::short_name(axis.axis)] = mesh.coordinate(axis.axis, rank.rank);
    }
    ranks.push_back({{"rank", rank.rank.value()},
                     {"coordinates", coordinates},
                     {"bytes", bytes_json(rank.bytes)},
                     {"snapshot", rank.snapshot_bytes}});
  }
  const auto& largest = plan.largest();
  const auto layers = engine::stage_layers(options.model, schedule, mesh.degree(Axis::pipeline));
  base::Json json{
      {"architecture", model::name(options.model.architecture)},
      {"parameters", plan.parameter_count},
      {"flops_per_token", model::flops_per_token(options.model, schedule.sequence_length)},
      {"precision", precision_of(options.numerics)},
      {"world_size", mesh.world_size()},
      {"mesh", degrees},
      {"zero_level", options.sharding.zero_level},
      {"schedule",
       options.sharding.takes_units_in_turn() ? "breadth-first" : layout::name(schedule.kind)},
      {"virtual_stages", schedule.virtual_stages},
      {"micro_batches", schedule.micro_batches},
      {"tokens_per_step", plan.tokens_per_step},
      {"bubble_fraction", plan.bubble_fraction},
      {"activation_checkpointing", recomputed_json(plan)},
      {"bubble_assumes", bubble_assumption(schedule.kind)},
      {"stage_layers", layers.counts},
      {"stage_balance", layers.balance},
      {"largest", {{"rank", largest.rank.value()}, {"total", engine::total_bytes(largest.bytes)}}},
      {"ranks", ranks},
      {"not_counted", not_counted(plan)}};
  if (options.numerics.linear_forward == layers::LinearForward::e4m3) {
    json["weight_copies"] = engine::keeps_weight_copies(options) ? "kept" : "for each use";
  }
  if (plan.attention) json["attention"] = plan.attention->sentence;
  for (const auto& each : plan.libraries) json["libraries"][each.library] = each.bytes;
  return json;
}

}  // namespace trireme::plan
