// SPDX-License-Identifier: Apache-2.0
// trireme ownership
#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/model/owned_tensors.hpp"
#include "trireme/ownership/picture.hpp"
#include "trireme/sharding/assignment.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/shared_options.hpp"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

namespace trireme::apps {
namespace {

constexpr int most_owning_ranks = 1 << 16;
/// Tokens of a step where the configuration does not say.
constexpr double usual_tokens = 1 << 20;

struct OwnershipArguments {
  /// Empty: that of the configuration.
  std::string assignment;
  std::string svg;
  bool json = false;
};

/// Directories among the files: a run is its resolved configuration, a Hugging Face folder is a
/// model.from.
void read_directories(ConfigArguments& arguments) {
  std::vector<std::string> files;
  for (const auto& file : arguments.files) {
    const std::filesystem::path path(file);
    const auto resolved = path / config::resolved_file_name;
    if (base::exists(resolved)) {
      files.push_back(resolved.string());
    } else if (base::is_directory(path)) {
      arguments.settings.insert(arguments.settings.begin(), "model.from=" + file);
    } else {
      files.push_back(file);
    }
  }
  arguments.files = std::move(files);
}

/// Check of the model and the degrees alone: batches and stages are a run's affair.
base::Status check_degrees(const config::Config& config, const model::ModelConfig& model) {
  const auto data = config.options().parallel.data;
  if (!data) {
    return base::usage_failure(
        base::format("--data-parallel is required ({} says no number); give it, or set the key",
                     config.cited("parallel.data")));
  }
  const auto tensor = config.options().parallel.tensor;
  layout::ParallelArrangement asked{.tensor = tensor};
  model::describe(model, asked);
  for (const auto& violation : layout::violations(asked)) {
    return base::usage_failure(layout::text(violation, config::citation(config, asked)));
  }
  if (std::int64_t{*data} * tensor > most_owning_ranks) {
    return base::usage_failure(base::format(
        "{} x {} are {} ranks (at most {} are planned); lower one", config.cited("parallel.data"),
        config.cited("parallel.tensor"), std::int64_t{*data} * tensor, most_owning_ranks));
  }
  return {};
}

ownership::StepWork work_of(const config::Config& config, const model::ModelConfig& model,
                            int data) {
  const auto& train = config.options().train;
  ownership::StepWork work;
  work.parameters = static_cast<double>(model::parameter_count(model));
  work.tokens = usual_tokens;
  if (train.global_batch) {
    work.tokens =
        static_cast<double>(*train.global_batch) * static_cast<double>(train.sequence_length);
  }
  const auto of_round = static_cast<double>(data * train.micro_batch * train.sequence_length);
  work.micro_batches = std::max(1.0, std::round(work.tokens / of_round));
  const bool fp32 = config.options().numerics.precision == config::Precision::fp32;
  work.parameter_bytes = fp32 ? 4 : 2;
  return work;
}

/// The configured rule, or Muon where that updates element by element.
optim::Rule rule_of(const config::Config& config) {
  auto rule = optim::rule_from(config.options());
  if (!optim::traits(rule.kind).updates_matrices) rule.kind = optim::RuleKind::muon;
  return rule;
}

std::string origin_of(const optim::Rule& rule, const config::Config& config) {
  auto cited = config.cited("optimizer.name");
  if (rule.kind != config.options().optimizer.name) {
    return base::format("assumed: {} has no use for whole matrices", cited);
  }
  if (!optim::traits(rule.kind).has_owner_states) return cited;
  return base::format("{}; in the mean over {} updates, its FLOPs at the rate of products", cited,
                      rule.factors.root_every);
}

model::MatrixSelection selection_of(const config::Config& config) {
  const auto& optimizer = config.options().optimizer;
  return {optimizer.adamw_matrices, optimizer.per_head};
}

ownership::View view_of(const config::Config& config, const model::ModelConfig& model, int data,
                        const OwnershipArguments& arguments) {
  ownership::PlanOptions options;
  options.data = data;
  options.tensor = config.options().parallel.tensor;
  options.group_bytes = config.options().optimizer.group_bytes;
  ownership::View view;
  view.model = base::format("{}, {}", model::name(model.architecture),
                            base::counted(model.num_hidden_layers, "layer"));
  const auto rule = rule_of(config);
  view.optimizer = optim::name(rule.kind);
  view.optimizer_origin = origin_of(rule, config);
  if (rule.kind == optim::RuleKind::muon) {
    view.newton_schulz_steps = rule.muon.newton_schulz.steps;
  }
  view.tensors = model::owned_tensors(model, options.tensor,
                                      sharding::cost_of_matrix(rule, device::DType::bf16),
                                      selection_of(config));
  view.work = work_of(config, model, data);
  view.choice =
      choose_plan(view.tensors, options, view.work, view.machine,
                  arguments.assignment.empty() ? config.options().optimizer.assignment
                                               : ownership::assignment(arguments.assignment));
  view.adamw.plan = plan_of_adamw(view.tensors, options);
  view.adamw.price = price(view.adamw.plan, view.tensors, view.work, view.machine);
  return view;
}

/// `degrees` has --data-parallel, which need not go with the batch of `config`.
base::ExitCode show_ownership(const config::Config& config, const config::Config& degrees,
                              const OwnershipArguments& arguments, Context& context) {
  const auto model = base::value_or_throw(train::model_from(config));
  base::success_or_throw(check_degrees(degrees, model));
  base::success_or_throw(model::check(selection_of(config), model));
  const auto data = degrees.options().parallel.data;
  TRIREME_EXPECT(data.has_value(), "--data-parallel has a value");
  const auto view = view_of(config, model, *data, arguments);
  if (config.options().parallel.pipeline > 1) {
    base::log::warning(
        "ownership",
        "{} is left out: owners are shown for a stage that has all layers; each stage "
        "of a run divides its own",
        config.cited("parallel.pipeline"));
  }
  if (config.options().parallel.context > 1) {
    base::log::warning("ownership",
                       "{} is left out: owners are shown for data-parallel ranks alone; in a run "
                       "the ranks that divide sequences are owners, too",
                       config.cited("parallel.context"));
  }
  write_drawing({.file = arguments.svg,
                 .room = "ownership",
                 .title = "the load of each rank",
                 .picture = [&view] { return ownership::svg(view); },
                 .json = arguments.json,
                 .text =
                     [&] {
                       return arguments.json ? base::json_text(ownership::json(view), 2) + "\n"
                                             : ownership::text(view);
                     }},
                context);
  return base::ExitCode::done;
}

Action prepare_ownership(CLI::App& app) {
  auto config_arguments = ConfigArguments::add_to(app);
  auto arguments = std::make_shared<OwnershipArguments>();
  app.add_option(
         "--assignment", arguments->assignment,
         "auto (the one that adds least to a step), contiguous, padded or shared; without it, "
         "optimizer.assignment")
      ->type_name("NAME")
      ->check(one_of({"auto", "contiguous", "padded", "shared"}));
  add_svg(app, arguments->svg, "Also draws the load of each rank");
  app.add_flag("--json", arguments->json, "One JSON object: owners of all matrices, loads, bytes");
  return [config_arguments, arguments](Context& context) {
    read_directories(*config_arguments);
    auto with_degrees = *config_arguments;
    if (config_arguments->shortcuts.erase("parallel.data") > 0) {
      with_degrees.shortcuts["train.global_batch"] = "auto";
    }
    const auto config = base::value_or_throw(config_arguments->resolve(context.environment));
    const auto degrees = base::value_or_throw(with_degrees.resolve(context.environment));
    return show_ownership(config, degrees, *arguments, context);
  };
}

}  // namespace

Command ownership_command() {
  return {.name = "ownership",
          .summary = "Says which rank updates which matrix, and what that costs",
          .group = "Explanations",
          .details =
              "CONFIG is a configuration, a run directory, or a Hugging Face folder with a "
              "config.json. Layers' matrices have owners; embeddings, the head, norms and biases "
              "stay with AdamW. Costs are those of optimizer.name, of Muon where that needs no "
              "whole matrices. docs/matrix-optimizers.md explains the assignments, and where the "
              "predicted times come from. Exit codes: 0, or 2 for a model or degrees that do not "
              "go together.\n"
              "Example: trireme ownership configs/qwen3-0.6b.conf --data-parallel 32",
          .prepare = prepare_ownership};
}

}  // namespace trireme::apps
