// SPDX-License-Identifier: Apache-2.0
#include "run_schedule.hpp"

#include "trireme/layout/arrange.hpp"

#include <algorithm>

namespace trireme::report {
namespace {

/// Actions of all stages: each is a rectangle of the picture.
constexpr std::int64_t most_actions = 4000;
constexpr std::int64_t most_ranks = 4096;

/// Lengths of half-backwards in forwards, with a recomputation of whole layers: gradients of
/// weights lack attention's core and norms.
constexpr double longest_backward_input = 2.3;
constexpr double shortest_backward_weight = 0.7;

bool is_within(std::int64_t value, std::int64_t most) {
  return value >= 1 && value <= most;
}

}  // namespace

std::int64_t micro_batches_of(const RunView& run) {
  const auto samples = run.number("train.global_batch", 0);
  const auto micro_batch = run.number("train.micro_batch", 0);
  const auto data = run.number("parallel.data", 0);
  const bool known = is_within(samples, std::int64_t{1} << 40) &&
                     is_within(micro_batch, std::int64_t{1} << 20) &&
                     is_within(data, std::int64_t{1} << 20);
  return known ? samples / (micro_batch * data) : 0;
}

std::optional<RunSchedule> schedule_of(const RunView& run) {
  const auto stages = run.number("parallel.pipeline", 1);
  const auto chunks = run.number("parallel.virtual_stages", 1);
  const auto micro_batches = micro_batches_of(run);
  const auto kind = layout::schedule_kind(run.value("parallel.schedule"));
  const int kinds = kind.ok() && layout::splits_backward(*kind) ? 3 : 2;
  const bool fits = is_within(stages, most_actions) && stages > 1 &&
                    is_within(chunks, most_actions) && is_within(micro_batches, most_actions) &&
                    kinds * stages * chunks * micro_batches <= most_actions;
  if (!fits || !kind.ok()) return std::nullopt;
  auto schedule = layout::make_schedule(*kind, static_cast<int>(stages),
                                        static_cast<int>(micro_batches), static_cast<int>(chunks));
  if (!schedule.ok()) return std::nullopt;
  // An action of one of v virtual stages is 1/v of a stage's work.
  const double share = 1.0 / static_cast<double>(chunks);
  auto simulation = layout::simulate(*schedule, {share, share, share, 0.0});
  if (!simulation.ok()) return std::nullopt;
  double largest = simulation->bubble_fraction;
  if (layout::splits_backward(*kind)) {
    const auto unequal = layout::simulate(
        *schedule, {share, share * longest_backward_input, share * shortest_backward_weight, 0.0});
    if (!unequal.ok()) return std::nullopt;
    largest = std::max(largest, unequal->bubble_fraction);
  }
  return RunSchedule{std::move(schedule).value(), std::move(simulation).value(), largest};
}

std::optional<layout::Mesh> mesh_of(const RunView& run) {
  layout::ParallelArrangement degrees;
  for (const auto& key : layout::degree_keys()) {
    // Records may be older than this axis.
    const auto degree = run.number(key.key, key.quantity == layout::Quantity::context ? 1 : 0);
    if (!is_within(degree, most_ranks)) return std::nullopt;
    degrees.*key.number = degree;
  }
  const auto ranks = layout::known_ranks(degrees);
  if (ranks > most_ranks) return std::nullopt;
  auto mesh = layout::arrange(degrees, static_cast<int>(ranks));
  return mesh.ok() ? std::optional(std::move(mesh).value()) : std::nullopt;
}

}  // namespace trireme::report
