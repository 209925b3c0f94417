// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/model/model_config.hpp"
#include "trireme/plan/layout_choice.hpp"

#include <vector>

/// Layouts that a search compares. Private to the room.
namespace trireme::plan {

/// Every layout on so many ranks that violates no rule of a parallel arrangement, nothing computed
/// again: degrees, pieces of the model a stage, schedule, micro-batch, sequence parallelism and
/// ZeRO level. Of layouts that are the same work there is one.
std::vector<LayoutChoice> legal_layouts(const schema::Options& keys,
                                        const model::ModelConfig& model, int ranks,
                                        const std::vector<layout::ScheduleKind>& schedules);

/// Schedules that predict_step() prices, however slow a machine is.
std::vector<layout::ScheduleKind> priced_schedules();

/// Sets that a stage of at most so many layers may compute again: nothing, kinds in all layers,
/// whole layers in a part of them, with norms and activations of the others or without, or in all.
std::vector<config::Recompute> recompute_choices(int stage_layers);

/// Whether backward computes all again with `more` that it does with `less`.
bool computes_no_less(const config::Recompute& more, const config::Recompute& less);
/// Whether this is so kind by kind: such a set leaves no more activations in memory. A layer that
/// is computed as a whole needs its activations at once, and is compared with whole layers alone.
bool discards_no_less(const config::Recompute& more, const config::Recompute& less);
/// Sets that discard no less than every other one of their way: kinds, or whole layers.
config::Recompute most_discarded(const config::Recompute& of_the_way_of);
/// Those of all ways, of which one leaves least in memory. In fp8 the kinds without products are a
/// way, too: with them a single micro-batch reads weights once, and keeps no copies of them.
std::vector<config::Recompute> most_discarded_sets(config::Precision precision);

}  // namespace trireme::plan
