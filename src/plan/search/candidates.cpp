// SPDX-License-Identifier: Apache-2.0
#include "candidates.hpp"

#include "trireme/base/suggest.hpp"
#include "trireme/engine/choose_recompute.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/predict/step.hpp"

#include <algorithm>

namespace trireme::plan {
namespace {

using config::Activation;
using config::Recompute;
using layout::ParallelArrangement;

bool is_legal(const ParallelArrangement& arrangement) {
  return layout::violations(arrangement).empty();
}

/// Legal layouts, one setting after the other: what is not chosen yet is not known, and violates no
/// rule.
class Candidates {
 public:
  Candidates(const schema::Options& keys, const model::ModelConfig& model,
             const std::vector<layout::ScheduleKind>& schedules)
      : schedules_(schedules), layers_(model.num_hidden_layers) {
    known_ = engine::arrangement_of(with_layout(keys, {}), model);
    for (auto* const number : {&known_.tensor, &known_.pipeline, &known_.data,
                               &known_.virtual_stages, &known_.micro_batch}) {
      number->reset();
    }
    known_.schedule.reset();
    known_.sequence.reset();
  }

  std::vector<LayoutChoice> on(int ranks) && {
    known_.world_size = ranks;
    choice_.ranks = ranks;
    for (const int tensor : base::divisors(ranks)) {
      auto known = known_;
      known.tensor = choice_.tensor = tensor;
      if (is_legal(known)) choose_pipeline(known);
    }
    return std::move(found_);
  }

 private:
  void choose_pipeline(ParallelArrangement known) {
    for (const int pipeline : base::divisors(choice_.ranks / choice_.tensor)) {
      known.pipeline = choice_.pipeline = pipeline;
      if (is_legal(known)) choose_schedule(known);
    }
  }

  void choose_schedule(ParallelArrangement known) {
    for (const auto kind : schedules_) {
      // One stage runs 1f1b, whichever schedule is asked for.
      if (choice_.pipeline == 1 && kind != layout::ScheduleKind::one_forward_one_backward) continue;
      known.schedule = choice_.schedule = kind;
      const int most = layout::has_virtual_stages(kind) ? layers_ / choice_.pipeline : 1;
      for (int virtual_stages = 1; virtual_stages <= most; ++virtual_stages) {
        known.virtual_stages = choice_.virtual_stages = virtual_stages;
        if (is_legal(known)) choose_micro_batch(known);
      }
    }
  }

  void choose_micro_batch(ParallelArrangement known) {
    const auto of_replica = static_cast<int>(*known.global_batch / choice_.data());
    if (of_replica < 1) return;
    for (const int micro_batch : base::divisors(of_replica)) {
      known.micro_batch = choice_.micro_batch = micro_batch;
      for (const bool sequence : {false, true}) {
        // A rank without tensor-parallel ones beside it has all rows.
        if (sequence && choice_.tensor == 1) continue;
        known.sequence = choice_.sequence = sequence;
        if (is_legal(known)) choose_zero_level();
      }
    }
  }

  void choose_zero_level() {
    for (const int level : {0, 1, 3}) {
      // A replica alone has nothing to divide.
      if (level > 0 && choice_.data() == 1) continue;
      choice_.zero_level = level;
      found_.push_back(choice_);
    }
  }

  const std::vector<layout::ScheduleKind>& schedules_;
  int layers_;
  /// Sizes of the model and of the batch.
  ParallelArrangement known_;
  LayoutChoice choice_;
  std::vector<LayoutChoice> found_;
};

/// Whether a kind is discarded in no fewer layers, by itself or within what holds it.
bool holds(const Recompute& more, Activation kind, int layers) {
  if (more.layers(kind) >= layers) return true;
  return kind == Activation::activation && more.layers(Activation::mlp) >= layers;
}

template <typename Held>
bool all_kinds(Held&& held) {
  for (std::size_t kind = 0; kind < config::activation_count; ++kind) {
    if (!held(static_cast<Activation>(kind))) return false;
  }
  return true;
}

}  // namespace

std::vector<LayoutChoice> legal_layouts(const schema::Options& keys,
                                        const model::ModelConfig& model, int ranks,
                                        const std::vector<layout::ScheduleKind>& schedules) {
  return Candidates(keys, model, schedules).on(ranks);
}

std::vector<layout::ScheduleKind> priced_schedules() {
  predict::Machine machine;
  constexpr double rate = 1e12;
  machine.node = {
      .gpus = 2, .peak_fp32 = rate, .peak_bf16 = rate, .peak_fp8 = rate, .memory_rate = rate};
  machine.inside.rate = machine.network.rate = rate;
  predict::Workload workload;
  workload.shape = {.layers = 4,
                    .hidden = 64,
                    .heads = 1,
                    .kv_heads = 1,
                    .head_width = 64,
                    .intermediate = 64,
                    .gated_mlp = false,
                    .vocabulary = 64,
                    .tied_head = false,
                    .sequence = 64};
  workload.degrees.pipeline = 2;
  workload.micro_batches.count = 2;
  std::vector<layout::ScheduleKind> priced;
  for (std::size_t index = 0; index < layout::schedule_names.size(); ++index) {
    auto& micro = workload.micro_batches;
    micro.schedule = static_cast<layout::ScheduleKind>(index);
    micro.virtual_stages = layout::has_virtual_stages(micro.schedule) ? 2 : 1;
    if (predict::predict_step(machine, workload)) priced.push_back(micro.schedule);
  }
  return priced;
}

std::vector<Recompute> recompute_choices(int stage_layers) {
  constexpr int parts = 4;
  auto choices = engine::recompute_sets();
  int before = 0;
  for (int part = 1; part < parts; ++part) {
    const int layers = stage_layers * part / parts;
    if (layers == before) continue;
    before = layers;
    choices.push_back(Recompute{}.add(Activation::layer, layers));
    // The other layers go without what is cheapest for its memory.
    choices.push_back(
        Recompute{Activation::norms, Activation::activation}.add(Activation::layer, layers));
  }
  choices.push_back({Activation::layer});
  return choices;
}

bool computes_no_less(const Recompute& more, const Recompute& less) {
  return all_kinds([&](Activation kind) {
    const int layers = less.layers(kind);
    return holds(more, kind, layers) || more.layers(Activation::layer) >= layers;
  });
}

bool discards_no_less(const Recompute& more, const Recompute& less) {
  return all_kinds([&](Activation kind) { return holds(more, kind, less.layers(kind)); });
}

Recompute most_discarded(const Recompute& of_the_way_of) {
  if (of_the_way_of.layers(Activation::layer) > 0) return {Activation::layer};
  return {Activation::norms, Activation::attention, Activation::mlp};
}

std::vector<Recompute> most_discarded_sets(config::Precision precision) {
  std::vector<Recompute> sets{most_discarded({Activation::norms}),
                              most_discarded({Activation::layer})};
  if (precision == config::Precision::fp8) {
    sets.push_back({Activation::norms, Activation::attention, Activation::activation});
  }
  return sets;
}

}  // namespace trireme::plan
