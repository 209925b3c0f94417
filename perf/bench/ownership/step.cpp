// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/ownership/price.hpp"

#include "peer_steps.hpp"
#include "qwen3.hpp"
#include "sections.hpp"

#include <algorithm>
#include <iostream>
#include <limits>

namespace trireme::bench {
namespace {

using ownership::MachineSpeeds;
using ownership::Plan;
using ownership::StepPrice;

constexpr double usual_tokens = 1048576;
/// 128 sequences of 2,048: the defaults of Canzona's published script.
constexpr double few_tokens = 262144;
/// Gain of the published comparison (Wang et al. 2026).
constexpr double published_gain = 1.57;

/// Micro-batches of two sequences of 4,096 each.
double micro_batches_of(double tokens, int data) {
  return std::max(1.0, tokens / data / 8192);
}

Case case_of(const NamedModel& model, int data, int tensor, double tokens,
             const MachineSpeeds& machine) {
  Case on{.model = model, .options = {}, .work = {}, .machine = machine};
  on.options.data = data;
  on.options.tensor = tensor;
  on.work = {.parameters = static_cast<double>(model::parameter_count(model.config)),
             .tokens = tokens,
             .parameter_bytes = 2,
             .micro_batches = micro_batches_of(tokens, data)};
  return on;
}

/// Products of peers: the same as ours, or the published ones.
struct Products {
  const char* name;
  model::CostOfMatrix cost;
};
const Products all_products[] = {{"equal", model::muon_cost}, {"published", standard_cost}};

std::string case_text(const Case& on, const char* products) {
  return base::format("{:<5} {:>3} x {} {:>8} {:<9}", on.model.name, on.options.data,
                      on.options.tensor, on.work.tokens, products);
}

ownership::ChosenPlan choice_of(const Case& on) {
  return choose_plan(tensors_of(on, on.options.tensor, model::muon_cost), on.options, on.work,
                     on.machine);
}

/// The plan of all three whose update alone is shortest.
const ownership::PricedPlan& shortest_update(const ownership::ChosenPlan& choice) {
  const auto* best = &choice.chosen;
  for (const auto& other : choice.others) {
    if (other.price.update() < best->price.update()) best = &other;
  }
  return *best;
}

void print_update(const Case& on, const Products& products) {
  const auto choice = choice_of(on);
  const double peers[] = {price_of_layer_wise(on, products.cost).update(),
                          price_of_released(on, products.cost).update(),
                          price_of_canzona(on, products.cost).update()};
  auto line = case_text(on, products.name);
  for (const double peer : peers) line += base::format(" {:8.2f}", 1e3 * peer);
  for (const auto* own : {&choice.chosen, &shortest_update(choice)}) {
    const double update = own->price.update();
    line += base::format(" | {:<10} {:7.2f}", name(own->plan.assignment), 1e3 * update);
    for (const double peer : peers) line += base::format(" {:6.2f}x", peer / update);
  }
  std::cout << line << '\n';
}

/// A whole step of ours and of the peers: layers, released, Canzona.
struct Steps {
  double own = 0;
  double peers[3] = {};
};

/// Steps of one case by tokens. Plans do not depend on them.
class Iteration {
 public:
  Iteration(const Case& on, const Products& products)
      : case_(on),
        cost_(products.cost),
        tensors_(tensors_of(on, on.options.tensor, model::muon_cost)) {
    for (const auto each : ownership::all_assignments) {
      plans_.push_back(make_plan(tensors_, on.options, each));
    }
  }

  Steps at(double tokens) {
    case_.work.tokens = tokens;
    case_.work.micro_batches = micro_batches_of(tokens, case_.options.data);
    const double training = case_.work.training_seconds(case_.machine, plans_.front().ranks());
    double least = std::numeric_limits<double>::infinity();
    for (const auto& plan : plans_) {
      least = std::min(least, price(plan, tensors_, case_.work, case_.machine).total());
    }
    return {training + least,
            {training + price_of_layer_wise(case_, cost_).total(),
             training + price_of_released(case_, cost_).total(),
             training + price_of_canzona(case_, cost_).total()}};
  }

 private:
  Case case_;
  model::CostOfMatrix cost_;
  std::vector<ownership::OwnedTensor> tensors_;
  std::vector<Plan> plans_;
};

void print_whole_step(const Case& on, const Products& products) {
  auto line = case_text(on, products.name);
  const auto steps = Iteration(on, products).at(on.work.tokens);
  for (const double peer : steps.peers) line += base::format(" {:8.1f}", 1e3 * peer);
  line += base::format(" {:8.1f}", 1e3 * steps.own);
  for (const double peer : steps.peers) line += base::format(" {:6.2f}x", peer / steps.own);
  std::cout << line << '\n';
}

/// Gains over whole layers by tokens of a step, and the most tokens with the published gain.
void print_gains(const Case& on, const Products& products) {
  Iteration iteration(on, products);
  const auto gain = [&](double tokens, std::size_t peer) {
    const auto steps = iteration.at(tokens);
    return steps.peers[peer] / steps.own;
  };
  for (const std::size_t peer : {std::size_t{0}, std::size_t{1}}) {
    auto line = base::format("{:<5} {:>3} x {} {:<9} {:<8}", on.model.name, on.options.data,
                             on.options.tensor, products.name, peer == 0 ? "layers" : "released");
    for (double tokens = 1 << 16; tokens <= 1 << 22; tokens *= 2) {
      line += base::format(" {:6.2f}", gain(tokens, peer));
    }
    double low = 0;
    double high = 1 << 23;
    while (high - low > 1024) {
      const double middle = (low + high) / 2;
      (gain(middle, peer) >= published_gain ? low : high) = middle;
    }
    std::cout << line << base::format(" {:9.0f}\n", low);
  }
}

std::string parts(const StepPrice& price) {
  return base::format(" {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:8.2f}", 1e3 * price.reduce,
                      1e3 * price.exchange, 1e3 * price.compute, 1e3 * price.launch,
                      1e3 * price.gather, 1e3 * price.total());
}

void print_parts(const Case& on) {
  const auto tensors = tensors_of(on, on.options.tensor, model::muon_cost);
  const auto line = [&](std::string_view plan, const StepPrice& price, std::size_t buckets) {
    std::cout << base::format("{:<5} {:>3} x {} {:>8} {:<10}{} {:7}\n", on.model.name,
                              on.options.data, on.options.tensor, on.work.tokens, plan,
                              parts(price), buckets);
  };
  for (const auto each : ownership::all_assignments) {
    const auto plan = make_plan(tensors, on.options, each);
    line(name(each), price(plan, tensors, on.work, on.machine), plan.buckets.size());
  }
  const auto adamw = plan_of_adamw(tensors, on.options);
  line("AdamW", price(adamw, tensors, on.work, on.machine), adamw.buckets.size());
}

}  // namespace

void print_steps() {
  const MachineSpeeds machine;
  const auto for_each_case = [&](double tokens, const auto& print) {
    for (const auto& [data, tensor] : {std::pair{256, 1}, std::pair{32, 8}}) {
      for (const auto& model : qwen3_models()) {
        for (const auto& products : all_products) {
          print(case_of(model, data, tensor, tokens, machine), products);
        }
      }
    }
  };
  std::cout << "\nModelled: " << machine.text()
            << "\nPeers with the same products as we (equal), or as published (standard): whole "
               "layers, Megatron-LM's releases until April 2026, Canzona\n"
               "Gathers of parameters hide behind the next forward with our plans, Canzona's and "
               "AdamW's, and nothing hides those of the two layer-wise ones\n"
               "\nThe update on 256 GPUs, ms: computing, exchanges between tensor-parallel ranks, "
               "starts of kernels; our chosen plan, and the one with the shortest update\n"
               "model dp x tp   tokens products    layers released  Canzona | chosen        ours  "
               "layers releas. Canzona | shortest      ours  layers releas. Canzona\n";
  for_each_case(usual_tokens, print_update);
  std::cout << "\nThe whole step on 256 GPUs, ms: forward, backward, exposed reductions, update, "
               "exposed gathers\n"
               "model dp x tp   tokens products    layers released  Canzona     ours  layers "
               "releas. Canzona\n";
  for (const double tokens : {usual_tokens, few_tokens}) for_each_case(tokens, print_whole_step);
  std::cout << "\nThe whole step's gain by tokens of a step, 2^16 to 2^22; tokens up to which it "
               "is 1.57\n";
  for_each_case(usual_tokens, print_gains);
  std::cout << "\nParts of the steps, ms\nmodel dp x tp   tokens plan        reduce exchange "
               "compute  launch  gather    total buckets\n";
  for (const auto& [data, tensor] : {std::pair{256, 1}, std::pair{32, 8}}) {
    for (const auto& model : qwen3_models()) {
      print_parts(case_of(model, data, tensor, usual_tokens, machine));
    }
  }
}

}  // namespace trireme::bench
