// SPDX-License-Identifier: Apache-2.0
#include "reasons.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace trireme::plan {
namespace {

using base::format;
using predict::Part;

/// Parts that explain less than this of the difference are left out.
constexpr double least_part = 0.1;
/// Part of a step by which layouts that take as long differ.
constexpr double no_difference = 1e-3;
/// Rates that differ by less explain nothing.
constexpr double clearly_slower = 0.98;
constexpr double percent = 100;

double elements_of_rank(const predict::Workload& workload) {
  const auto& shape = workload.shape;
  const auto tables =
      static_cast<double>((shape.tied_head ? 1 : 2) * shape.vocabulary * shape.hidden);
  return (shape.layers * shape.layer_parameters() + tables) / workload.degrees.tensor /
         workload.degrees.pipeline;
}

std::string micro_batches_text(int count) {
  return format("{} micro-batch{}", count, count == 1 ? "" : "es");
}

std::string compute_cause(const Explained& layout, const Explained& best) {
  std::vector<std::string> causes;
  if (layout.choice.recompute != config::Recompute{} &&
      layout.choice.recompute != best.choice.recompute) {
    causes.push_back(format("backward computes {} again", layout.choice.recompute.text()));
  }
  if (layout.product_share < clearly_slower * best.product_share) {
    causes.push_back(
        format("products of {} rows and {} columns run at {:.0f} % of the rate of "
               "large ones, not {:.0f} %",
               layout.choice.micro_batch * layout.workload.shape.sequence,
               layout.workload.shape.intermediate / layout.choice.tensor,
               percent * layout.product_share, percent * best.product_share));
  }
  if (causes.empty()) return "its busiest stage has more to compute";
  return format("{}", base::join(causes, "; "));
}

std::string tensor_cause(const Explained& layout, const Explained& best,
                         const predict::Machine& machine) {
  const auto& choice = layout.choice;
  const int node = machine.node.gpus;
  if (node > 0 && (choice.tensor > node || node % choice.tensor != 0)) {
    return format("the {} ranks that share a matrix are on more than one node of {}", choice.tensor,
                  node);
  }
  if (choice.tensor != best.choice.tensor) {
    return format("{} ranks, not {}, exchange each layer's activations", choice.tensor,
                  best.choice.tensor);
  }
  if (choice.recompute.layers(config::Activation::layer) > 0) {
    return "layers that are computed again exchange theirs again";
  }
  if (choice.sequence != best.choice.sequence) {
    return choice.sequence ? "gathers and scatters in place of sums"
                           : "sums in place of gathers and scatters";
  }
  return format("exchanges of {}, each smaller, take longer",
                micro_batches_text(layout.workload.micro_batches.count));
}

std::string bubble_cause(const Explained& layout, const predict::Machine& machine) {
  const auto& micro = layout.workload.micro_batches;
  const int ranks = layout.workload.degrees.world_size();
  if (machine.node.computes_on_cores() && ranks > machine.node.cores) {
    return format("{} ranks take turns on {}", ranks, base::counted(machine.node.cores, "core"));
  }
  if (layout.choice.pipeline == 1) return "its ranks wait for each other";
  const auto pieces = micro.virtual_stages == 1
                          ? std::string()
                          : format(" of {} pieces each", micro.virtual_stages);
  return format("{} a step {} {}{}", micro_batches_text(micro.count),
                micro.count == 1 ? "fills" : "fill", base::counted(layout.choice.pipeline, "stage"),
                pieces);
}

std::string data_cause(const Explained& layout, const Explained& best) {
  std::vector<std::string> causes;
  const auto elements = base::count_text(elements_of_rank(layout.workload));
  const auto of_best = base::count_text(elements_of_rank(best.workload));
  if (elements != of_best) {
    causes.push_back(format("gradients of {} parameters a rank, not {}", elements, of_best));
  }
  if (layout.choice.data() != best.choice.data()) {
    causes.push_back(format("sums over {}, not {}", base::counted(layout.choice.data(), "replica"),
                            best.choice.data()));
  }
  if (layout.choice.zero_level > 2 && best.choice.zero_level < 3) {
    causes.emplace_back("weights are gathered when passes read them");
  }
  if (causes.empty()) return "less computation hides its sums of gradients";
  return format("{}", base::join(causes, "; "));
}

std::string cause(Part part, const Explained& layout, const Explained& best,
                  const predict::Machine& machine) {
  switch (part) {
    case Part::compute:
      return compute_cause(layout, best);
    case Part::tensor:
      return tensor_cause(layout, best, machine);
    case Part::pipeline:
      return format("messages between {} pieces are waited for",
                    layout.choice.pipeline * layout.choice.virtual_stages);
    case Part::bubble:
      return bubble_cause(layout, machine);
    case Part::data:
      return data_cause(layout, best);
    case Part::optimizer:
      return layout.choice.zero_level == 0 && best.choice.zero_level > 0
                 ? "every replica updates all of its parameters"
                 : "a rank updates more parameters";
  }
  return "";
}

double difference(Part part, const Explained& layout, const Explained& best) {
  return predict::seconds_of(layout.step.parts[part] - best.step.parts[part]);
}

}  // namespace

std::string seconds_text(double seconds) {
  constexpr double milliseconds = 1000;
  return seconds < 1 ? format("{:.1f} ms", milliseconds * seconds) : format("{:.3f} s", seconds);
}

std::string why_slower(const Explained& layout, const Explained& best,
                       const predict::Machine& machine) {
  std::vector<std::pair<double, Part>> more;
  for (std::size_t index = 0; index < predict::part_names.size(); ++index) {
    const auto part = static_cast<Part>(index);
    more.emplace_back(difference(part, layout, best), part);
  }
  std::sort(more.begin(), more.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first > b.first : a.second < b.second;
  });
  constexpr std::size_t most = 2;
  more.resize(most);
  const double all = predict::seconds_of(layout.step.total() - best.step.total());
  std::vector<std::string> parts;
  for (const auto& [seconds, part] : more) {
    if (seconds <= least_part * all) continue;
    parts.push_back(format("+{} {} ({})", seconds_text(seconds),
                           predict::part_names[static_cast<std::size_t>(part)],
                           cause(part, layout, best, machine)));
  }
  if (all <= no_difference * predict::seconds_of(best.step.total()) || parts.empty()) {
    return "takes as long";
  }
  return format("{} slower: {}", seconds_text(all), base::join(parts, ", "));
}

std::string why_without_room(const Misfit& misfit, const std::optional<LayoutChoice>& change) {
  const auto text =
      misfit.has_room()
          ? format("fits, but its step does not end within {:.0f} days", predict::longest_step_days)
          : format("does not fit: {} of {}, {} too much", base::bytes_text(misfit.bytes),
                   base::bytes_text(misfit.room), base::bytes_text(misfit.too_much()));
  if (!change) return text + "; nor does any layout that differs from it in two settings";
  return text +
         format("; with {} it does", base::join(differences(misfit.choice, *change), " and "));
}

}  // namespace trireme::plan
