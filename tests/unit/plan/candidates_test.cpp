// SPDX-License-Identifier: Apache-2.0
#include "plan/search/candidates.hpp"

#include "trireme/base/error.hpp"
#include "trireme/engine/from_config.hpp"

#include "small_model.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <set>

using namespace trireme;
using namespace trireme::plan;
using config::Activation;
using config::Recompute;
using tests::model_of;
using tests::small_config;

namespace {

/// Every combination of numbers that could be one, judged by the engine's own rules.
std::set<LayoutChoice::Order> layouts_by_hand(const config::Config& config, int ranks) {
  std::set<LayoutChoice::Order> found;
  LayoutChoice choice;
  choice.ranks = ranks;
  for (choice.tensor = 1; choice.tensor <= ranks; ++choice.tensor) {
    for (choice.pipeline = 1; choice.tensor * choice.pipeline <= ranks; ++choice.pipeline) {
      if (ranks % (choice.tensor * choice.pipeline) != 0) continue;
      for (const auto kind :
           {layout::ScheduleKind::gpipe, layout::ScheduleKind::one_forward_one_backward,
            layout::ScheduleKind::interleaved}) {
        choice.schedule = kind;
        for (choice.virtual_stages = 1; choice.virtual_stages < 6; ++choice.virtual_stages) {
          for (choice.micro_batch = 1; choice.micro_batch <= 12; ++choice.micro_batch) {
            for (const bool sequence : {false, true}) {
              choice.sequence = sequence;
              for (const int level : {0, 1, 3}) {
                choice.zero_level = level;
                const auto legal =
                    engine::options_from(with_layout(config.options(), choice), model_of(config),
                                         choice.mesh(), base::Rank{0});
                // Equal work is there once.
                const bool is_other = (sequence && choice.tensor == 1) ||
                                      (level > 0 && choice.data() == 1) ||
                                      (choice.pipeline == 1 && kind == layout::ScheduleKind::gpipe);
                if (legal && !is_other) found.insert(choice.order());
              }
            }
          }
        }
      }
    }
  }
  return found;
}

}  // namespace

TEST_CASE("candidates are the layouts that the engine's rules allow, each once") {
  const std::vector<layout::ScheduleKind> schedules{layout::ScheduleKind::gpipe,
                                                    layout::ScheduleKind::one_forward_one_backward,
                                                    layout::ScheduleKind::interleaved};
  for (const auto* batch : {"train.global_batch=8", "train.global_batch=12"}) {
    const auto config = small_config({batch, "train.sequence_length=31"});
    for (const int ranks : {1, 2, 4, 6, 8}) {
      CAPTURE(batch, ranks);
      const auto listed = legal_layouts(config.options(), model_of(config), ranks, schedules);
      std::set<LayoutChoice::Order> found;
      for (const auto& choice : listed) found.insert(choice.order());
      CHECK(found.size() == listed.size());
      CHECK(found == layouts_by_hand(config, ranks));
    }
  }
}

TEST_CASE("schedules that have a price are asked for") {
  const auto priced = priced_schedules();
  for (const auto kind :
       {layout::ScheduleKind::gpipe, layout::ScheduleKind::one_forward_one_backward,
        layout::ScheduleKind::interleaved}) {
    CHECK(std::count(priced.begin(), priced.end(), kind) == 1);
  }
}

TEST_CASE("sets that compute no less again are told from others") {
  const Recompute layer{Activation::layer};
  const Recompute norms{Activation::norms};
  const Recompute mlp{Activation::mlp};
  const Recompute activation{Activation::activation};
  CHECK(computes_no_less(layer, mlp));
  CHECK_FALSE(computes_no_less(mlp, layer));
  CHECK(computes_no_less(mlp, activation));
  CHECK_FALSE(computes_no_less(norms, mlp));
  CHECK(discards_no_less(mlp, activation));
  CHECK_FALSE(discards_no_less(layer, norms));
  CHECK(discards_no_less(layer, Recompute{}.add(Activation::layer, 3)));
  CHECK_FALSE(discards_no_less(Recompute{}.add(Activation::layer, 2),
                               Recompute{}.add(Activation::layer, 3)));
  for (const auto& set : recompute_choices(8)) {
    CHECK(computes_no_less(most_discarded(set), set));
    CHECK(computes_no_less(set, {}));
  }
  // Kinds without products are a way of their own where weights have copies for products.
  CHECK(most_discarded_sets(config::Precision::bf16).size() == 2);
  CHECK(most_discarded_sets(config::Precision::fp8).size() == 3);
  CHECK(recompute_choices(8).size() == 19);
  CHECK(recompute_choices(1).size() == 13);
}
