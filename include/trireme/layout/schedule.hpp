// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/layout/placement.hpp"

#include <array>
#include <compare>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::layout {

enum class ScheduleKind {
  gpipe,
  one_forward_one_backward,
  interleaved,
  // Qi et al. 2023 (arXiv 2401.10241) and, in the shape of a V, 2024 (arXiv 2405.15362).
  zero_bubble_h1,
  zero_bubble_h2,
  zero_bubble_v
};
/// Names of the kinds, in their order.
inline constexpr std::array<std::string_view, 6> schedule_names{"gpipe", "1f1b",  "interleaved",
                                                                "zb-h1", "zb-h2", "zb-v"};

base::Result<ScheduleKind> schedule_kind(std::string_view name);
std::string_view name(ScheduleKind kind);
/// Order of the chunks on the stages.
PlacementKind placement_kind(ScheduleKind kind);
/// Whether gradients of weights are actions of their own.
bool splits_backward(ScheduleKind kind);
/// Whether stages have more than one chunk of the model.
bool has_virtual_stages(ScheduleKind kind);

enum class ActionKind {
  forward,
  backward,        ///< input gradient, then weight gradient
  backward_input,  ///< for schedules that split backward (zero bubble)
  backward_weight,
};
const char* name(ActionKind kind);

/// Step of a stage's work. Messages follow from the actions and are not listed: a forward receives
/// from the virtual stage before it and sends to the one after; a backward the reverse.
struct Action {
  ActionKind kind;
  int micro_batch;
  /// Index of the model chunk on this stage (0 for schedules without interleaving).
  int virtual_stage;
  auto operator<=>(const Action&) const = default;
};

/// Actions of every stage, in order: actions[stage]. Actions of one kind on one chunk come in the
/// order of their micro-batches in every schedule, so that all schedules add weight gradients in
/// one order.
struct Schedule {
  ScheduleKind kind;
  int stages;
  int micro_batches;
  int virtual_stages;
  std::vector<std::vector<Action>> actions;

  Placement placement() const { return {stages, virtual_stages, placement_kind(kind)}; }
};

/// Refuses what a schedule cannot do (interleaving needs micro-batches in multiples of the
/// stages, and at least two virtual stages; zb-v two; the others one), naming the valid choices.
base::Result<Schedule> make_schedule(ScheduleKind kind, int stages, int micro_batches,
                                     int virtual_stages);

/// Schedule of one stage that takes its chunks one after the other, each with all micro-batches
/// (Lamy-Poirier 2022, arXiv 2211.05953): a chunk's weights are read in two runs of actions, and
/// the activations of all micro-batches are held.
Schedule breadth_first(int chunks, int micro_batches);

/// Layers [begin, end) of each chunk: result[stage][virtual_stage]. `given` (one count per position
/// of the model, empty for even) is checked; only the first and the last position may be given no
/// layer. An even assignment gives the remainder to the middle positions, because the first holds
/// the embedding and the last the head.
struct LayerRange {
  int begin;
  int end;
  bool operator==(const LayerRange&) const = default;
};
base::Result<std::vector<std::vector<LayerRange>>> assign_layers(int layers,
                                                                 const Placement& placement,
                                                                 const std::vector<int>& given);

}  // namespace trireme::layout
