// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/layout/ownership_price.hpp"

#include "peers.hpp"
#include "qwen3.hpp"
#include "sections.hpp"

#include <algorithm>
#include <iostream>

namespace trireme::bench {
namespace {

using layout::Assignment;
using layout::Machine;
using layout::OwnershipOptions;
using layout::OwnershipPlan;
using layout::StepPrice;
using layout::StepWork;

constexpr double usual_tokens = 1048576;
/// What 32B has in a step of half a second on 256 GPUs at the training rate below. Canzona's own
/// figures for 32B (an update of 71.8 ms, 5.8 times shorter than layer-wise; a step 1.57 times)
/// leave 0.53 s for all else in a step.
constexpr double few_tokens = 262144;

/// One model on one arrangement of GPUs.
struct Case {
  const NamedModel& model;
  OwnershipOptions options;
  StepWork work;
  Machine machine;
};

Case case_of(const NamedModel& model, int data, int tensor, double tokens, const Machine& machine) {
  Case on{.model = model, .options = {}, .work = {}, .machine = machine};
  on.options.data = data;
  on.options.tensor = tensor;
  on.work = {.parameters = static_cast<double>(model::parameter_count(model.config)),
             .tokens = tokens,
             .parameter_bytes = 2};
  return on;
}

std::vector<layout::OwnedTensor> tensors_of(const Case& on, int tensor,
                                            const model::CostOfMatrix& cost) {
  return model::owned_tensors(on.model.config, tensor, cost);
}

/// Layer of each tensor that is a matrix, and the index of its unit among fused_units().
struct Position {
  int layer = 0;
  std::size_t unit = 0;
};
std::vector<Position> positions(const std::vector<layout::OwnedTensor>& tensors,
                                const model::ModelConfig& config) {
  // fused_units() go through the model's order; the tensors through that of backward.
  std::vector<Position> by_tensor(tensors.size());
  std::size_t unit = 0;
  std::string fused;
  for (const auto& parameter : model::parameters(config)) {
    if (!model::is_rule_matrix(parameter)) continue;
    if (!fused.empty() && fused != parameter.fused_name) ++unit;
    fused = parameter.fused_name;
    const auto at = std::find_if(tensors.begin(), tensors.end(), [&](const auto& tensor) {
      return tensor.name == parameter.tensor.name;
    });
    by_tensor[static_cast<std::size_t>(at - tensors.begin())] = {parameter.place.layer, unit};
  }
  return by_tensor;
}

/// A plan in which `owner_of` says who has each matrix.
template <typename OwnerOf>
OwnershipPlan plan_of_owners(const std::vector<layout::OwnedTensor>& tensors,
                             const OwnershipOptions& options, const OwnerOf& owner_of) {
  auto plan = plan_ownership(tensors, options, Assignment::contiguous);
  std::fill(plan.load.begin(), plan.load.end(), 0.0);
  for (auto& owner : plan.matrices) {
    const int rank = owner_of(owner.tensor);
    owner.ranges = {{rank, 0, tensors[owner.tensor].shape.longer()}};
    plan.load[static_cast<std::size_t>(rank)] += tensors[owner.tensor].flops;
  }
  return plan;
}

StepPrice price_of_canzona(const Case& on, const model::CostOfMatrix& cost) {
  const auto tensors = tensors_of(on, on.options.tensor, cost);
  const auto place = positions(tensors, on.model.config);
  const auto units = fused_units(on.model.config, cost, FusedCost::of_parts);
  const auto owners = canzona_owners(units, on.options.data, on.options.tensor);
  const auto plan = plan_of_owners(tensors, on.options,
                                   [&](std::size_t tensor) { return owners[place[tensor].unit]; });
  return price(plan, tensors, on.work, on.machine);
}

/// Whole layers in turn on dp ranks. Tensor-parallel ranks gather the matrices of their layers, and
/// all compute the same. Gradients are all-reduced; owners broadcast parameters.
StepPrice price_of_layer_wise(const Case& on, const model::CostOfMatrix& cost) {
  auto options = on.options;
  options.tensor = 1;
  const auto whole = tensors_of(on, 1, cost);
  const auto place = positions(whole, on.model.config);
  const auto plan = plan_of_owners(
      whole, options, [&](std::size_t tensor) { return place[tensor].layer % options.data; });
  auto result = price(plan, whole, on.work, on.machine);
  const auto held = tensors_of(on, on.options.tensor, cost);
  // An all-reduce takes twice the time of a reduce-scatter, so backward hides half as much of it.
  auto half = on.machine;
  half.node_bytes /= 2;
  half.network_bytes /= 2;
  half.collective_seconds *= 2;
  const auto adamw = plan_of_adamw(held, on.options);
  result.reduce = price(adamw, held, on.work, half).reduce;
  result.gather = price(adamw, held, on.work, on.machine).gather;
  const int data = on.options.data;
  if (on.options.tensor > 1) {
    std::vector<double> own(static_cast<std::size_t>(data), 0.0);
    for (const auto& owner : plan.matrices) {
      own[static_cast<std::size_t>(owner.ranges.front().rank)] +=
          static_cast<double>(whole[owner.tensor].held_elements);
    }
    result.exchange = 4 * *std::max_element(own.begin(), own.end()) * (on.options.tensor - 1) /
                      on.options.tensor / on.machine.node_bytes;
  }
  return result;
}

/// What peers compute with: the same products as we, or the published ones.
struct Products {
  const char* name;
  model::CostOfMatrix cost;
};
const Products all_products[] = {{"equal", model::muon_cost}, {"published", standard_cost}};

std::string case_text(const Case& on, const char* products) {
  return base::format("{:<5} {:>3} x {} {:>8} {:<9}", on.model.name, on.options.data,
                      on.options.tensor, on.work.tokens, products);
}

layout::ChosenPlan choice_of(const Case& on) {
  return choose_ownership(tensors_of(on, on.options.tensor, model::muon_cost), on.options, on.work,
                          on.machine);
}

/// The plan of all three whose update alone is shortest.
const layout::PricedPlan& shortest_update(const layout::ChosenPlan& choice) {
  const auto* best = &choice.chosen;
  for (const auto& other : choice.others) {
    if (other.price.update() < best->price.update()) best = &other;
  }
  return *best;
}

void print_update(const Case& on, const Products& products) {
  const auto choice = choice_of(on);
  const double layers = price_of_layer_wise(on, products.cost).update();
  const double canzona = price_of_canzona(on, products.cost).update();
  auto line =
      case_text(on, products.name) + base::format(" {:8.2f} {:8.2f}", 1e3 * layers, 1e3 * canzona);
  for (const auto* own : {&choice.chosen, &shortest_update(choice)}) {
    const double update = own->price.update();
    line += base::format(" | {:<10} {:7.2f} {:6.2f}x {:6.2f}x", name(own->plan.assignment),
                         1e3 * update, layers / update, canzona / update);
  }
  std::cout << line << '\n';
}

void print_whole_step(const Case& on, const Products& products) {
  const auto own = choice_of(on).chosen;
  const double training = on.work.training_seconds(on.machine, own.plan.ranks());
  const double layers = training + price_of_layer_wise(on, products.cost).total();
  const double canzona = training + price_of_canzona(on, products.cost).total();
  const double step = training + own.price.total();
  std::cout << case_text(on, products.name)
            << base::format(" {:8.1f} {:8.1f} {:8.1f}  {:<10} {:6.2f}x {:6.2f}x\n", 1e3 * layers,
                            1e3 * canzona, 1e3 * step, name(own.plan.assignment), layers / step,
                            canzona / step);
}

std::string parts(const StepPrice& price) {
  return base::format(" {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:7.2f} {:8.2f}", 1e3 * price.reduce,
                      1e3 * price.exchange, 1e3 * price.compute, 1e3 * price.launch,
                      1e3 * price.gather, 1e3 * price.total());
}

void print_parts(const Case& on) {
  const auto tensors = tensors_of(on, on.options.tensor, model::muon_cost);
  const auto line = [&](const char* plan, const StepPrice& price, std::size_t buckets) {
    std::cout << base::format("{:<5} {:>3} x {} {:>8} {:<10}{} {:7}\n", on.model.name,
                              on.options.data, on.options.tensor, on.work.tokens, plan,
                              parts(price), buckets);
  };
  for (const auto each : layout::all_assignments) {
    const auto plan = plan_ownership(tensors, on.options, each);
    line(name(each), price(plan, tensors, on.work, on.machine), plan.buckets.size());
  }
  const auto adamw = plan_of_adamw(tensors, on.options);
  line("AdamW", price(adamw, tensors, on.work, on.machine), adamw.buckets.size());
}

}  // namespace

void print_steps() {
  const Machine machine;
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
            << "\nPeers with the same products as we (equal), or as published (standard)\n"
               "\nThe update on 256 GPUs, ms: computing, exchanges between tensor-parallel ranks, "
               "starts of kernels; our chosen plan, and the one with the shortest update\n"
               "model dp x tp   tokens products    layers  Canzona | chosen        ours  layers "
               "Canzona | shortest      ours  layers Canzona\n";
  for_each_case(usual_tokens, print_update);
  std::cout << "\nThe whole step on 256 GPUs, ms: forward, backward, exposed reductions, update, "
               "gathers\n"
               "model dp x tp   tokens products    layers  Canzona     ours  chosen      layers "
               "Canzona\n";
  for (const double tokens : {usual_tokens, few_tokens}) for_each_case(tokens, print_whole_step);
  std::cout << "\nParts of the steps, ms\nmodel dp x tp   tokens plan        reduce exchange "
               "compute  launch  gather    total buckets\n";
  for (const auto& [data, tensor] : {std::pair{256, 1}, std::pair{32, 8}}) {
    for (const auto& model : qwen3_models()) {
      print_parts(case_of(model, data, tensor, usual_tokens, machine));
    }
  }
}

}  // namespace trireme::bench
