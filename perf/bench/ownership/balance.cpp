// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include "optimum.hpp"
#include "qwen3.hpp"
#include "sections.hpp"

#include <algorithm>
#include <ctime>
#include <iostream>

namespace trireme::bench {
namespace {

using ownership::Assignment;

constexpr int rank_counts[] = {8, 32, 128, 256};

struct Cost {
  const char* name;
  model::CostOfMatrix of;
};
const Cost costs[] = {{"standard", standard_cost}, {"cheapest", model::muon_cost}};

ownership::Plan plan(const model::ModelConfig& config, const model::CostOfMatrix& cost,
                     const ownership::PlanOptions& options, Assignment assignment) {
  return ownership::make_plan(model::owned_tensors(config, options.tensor, cost), options,
                              assignment);
}

ownership::PlanOptions of_degrees(int data, int tensor) {
  ownership::PlanOptions options;
  options.data = data;
  options.tensor = tensor;
  return options;
}

std::string cell(const ownership::Plan& plan) {
  return base::format("{:.3f} {:4.1f}% {:>3}", plan.max_over_mean(), 100 * plan.padding(),
                      plan.buckets.size());
}

void print_balance_row(const NamedModel& model, const Cost& cost, int data, int tensor) {
  const auto options = of_degrees(data, tensor);
  const int ranks = data * tensor;
  const auto fused = fused_units(model.config, cost.of, FusedCost::of_parts);
  const auto separate = separate_units(model.config, cost.of);
  const auto peer = megatron(fused, data);
  auto line =
      base::format("{:<5} {:<8} {:>3} x {} {:6.2f} {:7.2f} {:6.2f} {:6.2f} {:3.0f}% {:>3} {:7.3f}",
                   model.name, cost.name, data, tensor, max_over_mean(layer_wise(fused, ranks)),
                   max_over_mean(canzona(fused, data, tensor)),
                   max_over_mean(snake(separate, ranks)), max_over_mean(peer.loads),
                   100 * peer.padding, peer.buckets, max_over_mean(longest_first(separate, ranks)));
  for (const auto assignment : ownership::all_assignments) {
    if (assignment == Assignment::shared && !cost.of({1, 1}).split.possible()) {
      line += " | -";
    } else {
      line += " | " + cell(plan(model.config, cost.of, options, assignment));
    }
  }
  std::cout << line << '\n';
}

}  // namespace

void print_simple_plans() {
  std::cout << "\nLargest load over the mean, whole matrices, q/k/v and gate/up as one, five "
               "standard steps:\nmodel  dp  contiguous  snake  longest first\n";
  for (const auto& model : qwen3_models()) {
    const auto units = fused_units(model.config, standard_cost, FusedCost::as_one);
    for (const int ranks : {32, 128, 256}) {
      std::cout << base::format("{:<5} {:>3} {:11.2f} {:6.2f} {:14.2f}\n", model.name, ranks,
                                max_over_mean(contiguous(units, ranks)),
                                max_over_mean(snake(units, ranks)),
                                max_over_mean(longest_first(units, ranks)));
    }
    const auto separate = separate_units(model.config, standard_cost);
    std::cout << base::format("{:<5} 256 {:11.2f} {:6} {:14.3f}  q, k, v, gate, up apart\n",
                              model.name, max_over_mean(contiguous(separate, 256)), "",
                              max_over_mean(longest_first(separate, 256)));
  }
}

void print_balance() {
  std::cout << "\nLargest load over the mean, padding, buckets. Peers (own implementations): whole "
               "layers; Canzona's cuts by elements; snake;\nMegatron's shards, of dp ranks alone; "
               "longest first without buckets\n"
               "model cost      dp x tp layers Canzona  snake Megatron     longest | contiguous   "
               "   | padded          | shared\n";
  for (const auto& model : qwen3_models()) {
    for (const auto& cost : costs) {
      for (const int ranks : rank_counts) print_balance_row(model, cost, ranks, 1);
      print_balance_row(model, cost, 32, 8);
    }
  }
}

namespace {

void print_optimum_row(const NamedModel& model, const Cost& cost, int ranks) {
  std::vector<double> flops;
  double sum = 0;
  for (const auto& unit : separate_units(model.config, cost.of)) {
    flops.push_back(unit.flops);
    sum += unit.flops;
  }
  std::vector<double> most;
  auto line = base::format("{:<5} {:<8} {:>3}", model.name, cost.name, ranks);
  for (const auto assignment : {Assignment::contiguous, Assignment::padded}) {
    const auto own = plan(model.config, cost.of, of_degrees(ranks, 1), assignment);
    most.push_back(*std::max_element(own.load.begin(), own.load.end()));
    line += base::format(" {:10.4f}", own.max_over_mean());
  }
  const double bound =
      bound_of_largest_load(flops, ranks, *std::min_element(most.begin(), most.end()));
  line += base::format(" {:17.4f}", bound * ranks / sum);
  for (const double each : most) line += base::format(" {:8.2f} %", 100 * (each / bound - 1));
  std::cout << line << '\n';
}

}  // namespace

void print_optimum() {
  std::cout << "\nWhole matrices beside the optimum (branch and bound on loads alone, matrices "
               "anywhere): largest load over the mean\n"
               "model cost      dp contiguous     padded optimum, at least  above that\n";
  for (const auto& model : qwen3_models()) {
    for (const auto& cost : costs) {
      for (const int ranks : {2, 3, 4, 6, 8, 12, 16, 24, 32}) {
        print_optimum_row(model, cost, ranks);
      }
    }
  }
}

void print_planning_time() {
  std::cout << "\nProcessor time to plan, best of five, all three assignments\n"
               "model  dp x tp    ms\n";
  for (const auto& model : qwen3_models()) {
    for (const auto& [data, tensor] : {std::pair{256, 1}, std::pair{32, 8}}) {
      const auto options = of_degrees(data, tensor);
      const auto tensors = model::owned_tensors(model.config, tensor, model::muon_cost);
      double best = 1e9;
      for (int run = 0; run < 5; ++run) {
        const auto start = std::clock();
        for (const auto each : ownership::all_assignments) make_plan(tensors, options, each);
        best = std::min(best, static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC);
      }
      std::cout << base::format("{:<5} {:>3} x {} {:6.1f}\n", model.name, data, tensor, 1e3 * best);
    }
  }
}

}  // namespace trireme::bench
