// SPDX-License-Identifier: Apache-2.0
#include "refusals.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <string>

namespace trireme::plan {

using base::format;

base::Status check_search(const config::Config& config, const predict::Machine& machine,
                          const SearchRequest& request) {
  if (!config.options().train.global_batch) {
    return base::usage_failure(
        "train.global_batch = auto does not go with a search (layouts are compared for the same "
        "batch, and auto is another one for each); set it to the sequences of a step");
  }
  if (config.options().parallel.context > 1) {
    return base::usage_failure(
        format("parallel.context = {} does not go with a search (it does not divide sequences yet, "
               "because their step is not predicted); set parallel.context=1",
               config.options().parallel.context));
  }
  if (config.options().offload.optimizer != config::OffloadTo::none) {
    return base::usage_failure(
        "offload.optimizer = host does not go with a search (copies between hosts and devices are "
        "not predicted yet); set offload.optimizer=none");
  }
  if (config.options().train.document_mask) {
    return base::usage_failure(
        "train.document_mask = true does not go with a search (how many keys documents see is not "
        "predicted yet); set train.document_mask=false");
  }
  const auto& kept = request.kept;
  const bool keeps_level = std::count(kept.begin(), kept.end(), "parallel.zero_level") > 0;
  if (keeps_level && config.options().parallel.zero_level == 2) {
    return base::usage_failure(
        "parallel.zero_level = 2 does not go with a search of other settings (its reductions "
        "behind each micro-batch are not predicted yet); set parallel.zero_level to auto, 0, 1 or "
        "3, or give the other settings values");
  }
  if (request.objective == Objective::cost && machine.site.node_hour <= 0) {
    return base::usage_failure(format(
        "--objective cost needs site.node_hour, which machine {} does not have (it is the price of "
        "a node for an hour); add it to the machine file, with source.site.node_hour",
        machine.name));
  }
  const bool lacks_watts = machine.site.busy_watts <= 0;
  if (request.objective == Objective::carbon && !has_carbon(machine)) {
    return base::usage_failure(
        format("--objective carbon needs site.{}, which machine {} does not have (CO2 is that of "
               "the energy of nodes); add it to the machine file, with its source",
               lacks_watts ? "busy_watts" : "grams_per_kwh", machine.name));
  }
  return {};
}

base::Failure none_fits(const std::optional<Misfit>& smallest,
                        const std::optional<LayoutChoice>& on_more, const predict::Machine& machine,
                        const SearchRequest& request) {
  if (!smallest) {
    const auto kept = format("{}", base::join(request.kept, ", "));
    return base::usage_failure(format(
        "no layout of this model and batch is legal on {} ranks{}; use another number of ranks, or "
        "another train.global_batch{}",
        request.ranks, kept.empty() ? std::string() : format(" with {} as configured", kept),
        kept.empty() ? "" : ", or set some of these to auto"));
  }
  if (smallest->has_room()) {
    return base::usage_failure(format(
        "no layout that fits has a step of at most {:.0f} days on {} ranks of machine {} (longer "
        "is no step that anyone runs): {} takes longer; use more ranks, a smaller "
        "train.global_batch, or see the rates and times of the machine file",
        predict::longest_step_days, request.ranks, machine.name, text(smallest->choice)));
  }
  const auto advice =
      on_more ? format("use {} ranks, on which {} fits,", on_more->ranks, text(*on_more))
              : std::string("use more ranks,");
  return base::usage_failure(format(
      "no layout fits into machine {} on {} ranks: {} needs {} of {}, {} too much; {} a machine "
      "with more memory, or a shorter train.sequence_length",
      machine.name, request.ranks, text(smallest->choice), base::bytes_text(smallest->bytes),
      base::bytes_text(smallest->room), base::bytes_text(smallest->too_much()), advice));
}

}  // namespace trireme::plan
