// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/ownership/price.hpp"

#include "peers.hpp"
#include "qwen3.hpp"
#include "sections.hpp"

#include <algorithm>
#include <iostream>
#include <limits>

namespace trireme::bench {
namespace {

using ownership::Assignment;
using ownership::MachineSpeeds;
using ownership::Plan;
using ownership::PlanOptions;
using ownership::StepPrice;
using ownership::StepWork;

constexpr double usual_tokens = 1048576;
/// 128 sequences of 2,048: the defaults of Canzona's published script.
constexpr double few_tokens = 262144;
/// Gain of the published comparison (Wang et al. 2026).
constexpr double published_gain = 1.57;

/// One model on one arrangement of GPUs.
struct Case {
  const NamedModel& model;
  PlanOptions options;
  StepWork work;
  MachineSpeeds machine;
};

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

std::vector<ownership::OwnedTensor> tensors_of(const Case& on, int tensor,
                                               const model::CostOfMatrix& cost) {
  return model::owned_tensors(on.model.config, tensor, cost);
}

/// Layer of each tensor that is a matrix, and the index of its unit among fused_units().
struct Position {
  int layer = 0;
  std::size_t unit = 0;
};
std::vector<Position> positions(const std::vector<ownership::OwnedTensor>& tensors,
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

/// A plan in which `owner_of` says who has each matrix, all in one ragged bucket, and what AdamW
/// updates is divided evenly. It says how long the update takes, but nothing of reductions and
/// gathers.
template <typename OwnerOf>
Plan plan_of_owners(const std::vector<ownership::OwnedTensor>& tensors, const PlanOptions& options,
                    const OwnerOf& owner_of) {
  Plan plan;
  plan.data = options.data;
  plan.tensor = options.tensor;
  plan.load.assign(static_cast<std::size_t>(plan.ranks()), 0.0);
  std::vector<std::int64_t> length(static_cast<std::size_t>(plan.data), 0);
  std::int64_t others = 0;
  for (std::size_t at = 0; at < tensors.size(); ++at) {
    const auto& tensor = tensors[at];
    plan.elements += tensor.held_elements;
    if (!tensor.is_matrix()) {
      others += tensor.held_elements;
      continue;
    }
    const int rank = owner_of(at);
    plan.matrices.push_back(
        {.tensor = at, .ranges = {{rank, 0, tensor.shape.longer()}}, .square_ranks = {}});
    plan.load[static_cast<std::size_t>(rank)] += tensor.flops;
    length[static_cast<std::size_t>(rank / plan.tensor)] += tensor.held_elements;
  }
  ownership::PlannedBucket bucket{{0, 0}, {0}};
  for (const auto own : length) {
    bucket.cuts.push_back(bucket.cuts.back() + own + others / plan.data);
  }
  bucket.flat.end = bucket.cuts.back();
  plan.buckets.push_back(std::move(bucket));
  return plan;
}

/// Canzona's buffers are those of Megatron-LM's distributed optimizer, whose gathers of parameters
/// overlap with forward (--overlap-param-gather) as ours do: so do its.
StepPrice price_of_canzona(const Case& on, const model::CostOfMatrix& cost) {
  const auto tensors = tensors_of(on, on.options.tensor, cost);
  const auto place = positions(tensors, on.model.config);
  const auto units = fused_units(on.model.config, cost, FusedCost::of_parts);
  const auto owners = canzona_owners(units, on.options.data, on.options.tensor);
  const auto plan = plan_of_owners(tensors, on.options,
                                   [&](std::size_t tensor) { return owners[place[tensor].unit]; });
  auto result = price(plan, tensors, on.work, on.machine);
  auto cuts = on.options;
  cuts.order = ownership::BucketOrder::of_backward;
  const auto ragged =
      price(make_plan(tensors, cuts, Assignment::contiguous), tensors, on.work, on.machine);
  result.reduce = ragged.reduce;
  result.gather = ragged.gather;
  return result;
}

/// Replaces what ZeRO level 1 does: gradients by all-reduce, which takes twice the time of a
/// reduce-scatter, so that backward hides half as much of it; parameters by a gather of unequal
/// parts, with a start for each owner, which nothing hides.
void all_reduce_and_gather(const Case& on, const model::CostOfMatrix& cost, const Plan& plan,
                           StepPrice& result) {
  const auto held = tensors_of(on, on.options.tensor, cost);
  auto half = on.machine;
  half.node_bytes /= 2;
  half.network_bytes /= 2;
  half.collective_seconds *= 2;
  const auto adamw = plan_of_adamw(held, on.options);
  result.reduce = price(adamw, held, on.work, half).reduce;
  const auto owners =
      std::count_if(plan.load.begin(), plan.load.end(), [](double load) { return load > 0; });
  result.gather = gather_seconds(adamw, on.work, on.machine) +
                  static_cast<double>(owners) * on.machine.collective_seconds;
}

/// Tensor-parallel ranks gather the matrices that their data-parallel rank owns, in one collective
/// for each, and all compute the same.
double gather_along_tp(const Case& on, const Plan& plan,
                       const std::vector<ownership::OwnedTensor>& whole) {
  const int tensor = on.options.tensor;
  if (tensor == 1) return 0;
  std::vector<double> seconds(plan.load.size(), 0.0);
  for (const auto& owner : plan.matrices) {
    seconds[static_cast<std::size_t>(owner.ranges.front().rank)] +=
        4 * static_cast<double>(whole[owner.tensor].held_elements) * (tensor - 1) / tensor /
            on.machine.node_bytes +
        on.machine.collective_seconds;
  }
  return *std::max_element(seconds.begin(), seconds.end());
}

/// Whole layers in turn on dp ranks.
StepPrice price_of_layer_wise(const Case& on, const model::CostOfMatrix& cost) {
  auto options = on.options;
  options.tensor = 1;
  const auto whole = tensors_of(on, 1, cost);
  const auto place = positions(whole, on.model.config);
  const auto plan = plan_of_owners(
      whole, options, [&](std::size_t tensor) { return place[tensor].layer % options.data; });
  auto result = price(plan, whole, on.work, on.machine);
  all_reduce_and_gather(on, cost, plan, result);
  result.exchange = gather_along_tp(on, plan, whole);
  return result;
}

/// Megatron-LM's LayerWiseDistributedOptimizer as in its releases until April 2026 (pull request
/// 4509 tells what they did): parameters, q, k, v and gate, up as one, sorted by elements, to dp
/// ranks forth and back; those of AdamW too, so that one rank updates the embedding. Parameters are
/// copied into the gathered buffer and out of it, behind the update: overlap with forward came
/// later.
StepPrice price_of_released(const Case& on, const model::CostOfMatrix& cost) {
  auto options = on.options;
  options.tensor = 1;
  const auto whole = tensors_of(on, 1, cost);
  const auto place = positions(whole, on.model.config);
  const auto units = fused_units(on.model.config, cost, FusedCost::of_parts);
  const auto owners = ping_pong_owners(units, options.data);
  const auto plan = plan_of_owners(whole, options,
                                   [&](std::size_t tensor) { return owners[place[tensor].unit]; });
  auto result = price(plan, whole, on.work, on.machine);
  all_reduce_and_gather(on, cost, plan, result);
  result.exchange = gather_along_tp(on, plan, whole);
  double largest = 0;
  double all = 0;
  for (const auto& tensor : whole) {
    const double elements = static_cast<double>(tensor.held_elements) / on.options.tensor;
    all += elements;
    if (!tensor.is_matrix()) largest = std::max(largest, elements);
  }
  constexpr double update_bytes = 30;
  result.compute += largest * update_bytes / on.machine.memory_bytes;
  result.gather += 2 * on.work.parameter_bytes * all / on.machine.memory_bytes;
  return result;
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
