// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/ownership/price.hpp"

#include <algorithm>
#include <array>

namespace trireme::ownership {
namespace {

std::string time_text(double seconds) {
  return seconds < 1 ? base::format("{:.3g} ms", 1e3 * seconds) : base::format("{:.3g} s", seconds);
}

std::string buckets_text(const Plan& plan) {
  const auto count = plan.buckets.size();
  return base::format("{} bucket{}", count, count == 1 ? "" : "s");
}

/// The part of a step in which one plan loses most against another.
struct Loss {
  double seconds = 0;
  std::string words;
};

Loss largest_loss(const PricedPlan& loser, const PricedPlan& chosen) {
  const auto padding = base::format("padding {:.1f} % against {:.1f} %", 100 * loser.plan.padding(),
                                    100 * chosen.plan.padding());
  const auto balance = base::format("largest load over the mean {:.2f} against {:.2f}",
                                    loser.plan.max_over_mean(), chosen.plan.max_over_mean());
  const StepPrice &a = loser.price, &b = chosen.price;
  const std::array<Loss, 5> losses{
      {{a.reduce - b.reduce,
        base::format("exposed reduction ({} against {}, {})", buckets_text(loser.plan),
                     buckets_text(chosen.plan), padding)},
       {a.gather - b.gather, base::format("gathers ({}, {} against {})", padding,
                                          buckets_text(loser.plan), buckets_text(chosen.plan))},
       {a.compute - b.compute, base::format("computing ({})", balance)},
       {a.exchange - b.exchange, "exchanges between tensor-parallel ranks"},
       {a.launch - b.launch, "starts of kernels"}}};
  return *std::max_element(losses.begin(), losses.end(),
                           [](const Loss& x, const Loss& y) { return x.seconds < y.seconds; });
}

/// Matrices lie as with `contiguous`, and whoever reads `shared` would look for more.
bool shares_nothing(const Plan& plan) {
  return plan.assignment == Assignment::shared &&
         std::none_of(plan.matrices.begin(), plan.matrices.end(),
                      [](const MatrixOwner& owner) { return owner.is_shared(); });
}

std::string reason(const ChosenPlan& choice) {
  const auto& chosen = choice.chosen;
  auto text = base::format("{} adds {} to a step", name(chosen.plan.assignment),
                           time_text(chosen.price.total()));
  for (const auto& other : choice.others) {
    if (shares_nothing(other.plan)) {
      text += "; shared would share none";
      continue;
    }
    const double more = other.price.total() - chosen.price.total();
    if (more <= 0) {
      text += base::format("; {} {}", name(other.plan.assignment),
                           more == 0 ? "as much" : time_text(-more) + " less");
      continue;
    }
    const auto loss = largest_loss(other, chosen);
    text += base::format("; {} adds {} more, most of it by {}", name(other.plan.assignment),
                         time_text(more), loss.words);
  }
  return text;
}

}  // namespace

ChosenPlan choose(std::vector<PricedPlan> plans, std::optional<Assignment> asked) {
  TRIREME_EXPECT(!plans.empty(), "there is a plan to choose");
  const auto best =
      std::min_element(plans.begin(), plans.end(), [&](const PricedPlan& a, const PricedPlan& b) {
        if (asked) return a.plan.assignment == *asked && b.plan.assignment != *asked;
        if (shares_nothing(a.plan) != shares_nothing(b.plan)) return shares_nothing(b.plan);
        return a.price.total() < b.price.total();
      });
  ChosenPlan choice;
  choice.chosen = std::move(*best);
  plans.erase(best);
  choice.others = std::move(plans);
  choice.reason = (asked ? "asked for; " : "") + reason(choice);
  return choice;
}

ChosenPlan choose_plan(std::span<const OwnedTensor> tensors, const PlanOptions& options,
                       const StepWork& work, const MachineSpeeds& machine,
                       std::optional<Assignment> asked) {
  std::vector<PricedPlan> plans;
  for (const auto each : all_assignments) {
    auto plan = make_plan(tensors, options, each);
    const auto cost = price(plan, tensors, work, machine);
    plans.push_back({std::move(plan), cost});
  }
  return choose(std::move(plans), asked);
}

}  // namespace trireme::ownership
