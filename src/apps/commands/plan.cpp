// SPDX-License-Identifier: Apache-2.0
// trireme plan
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/data/exposure.hpp"
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/dataset.hpp"
#include "trireme/plan/memory_plan.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/shared_options.hpp"

#include <memory>
#include <optional>
#include <string>

namespace trireme::apps {
namespace {

struct PlanOptions {
  int ranks = 0;
  int rank = -1;
  bool json = false;
};

/// How often a run on these ranks sees its data; nothing where they cannot be read.
std::optional<data::Exposure> exposure_of(const config::Config& config,
                                          const model::ModelConfig& model, std::int64_t batch) {
  const auto& keys = config.options();
  if (keys.data.train.empty()) return std::nullopt;
  const auto dataset =
      engine::open_dataset_alone(keys, engine::Split::train, model, data::FileCheck::sizes);
  if (!dataset.ok()) return std::nullopt;
  return data::exposure_of(*dataset, static_cast<std::uint64_t>(keys.train.steps * batch));
}

std::string text_of(const plan::MemoryPlan& plan, const std::optional<data::Exposure>& exposure,
                    std::int64_t steps, std::int64_t batch) {
  auto text = plan::text(plan);
  if (exposure) text += base::format("\ndata: {}\n", data::text(*exposure, steps, batch));
  return text;
}

base::Json json_of(const plan::MemoryPlan& plan, const std::optional<data::Exposure>& exposure) {
  auto json = plan::to_json(plan);
  if (exposure) json["epochs"] = exposure->epochs;
  return json;
}

Action prepare_plan(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto options = std::make_shared<PlanOptions>();
  add_ranks(app, options->ranks, "Ranks in all; of one replica if it is not given", "--world");
  app.add_option("--rank", options->rank, "Only this rank")->type_name("R")->check(zero_or_more());
  app.add_flag("--json", options->json, "One JSON object, sizes in bytes");
  return [arguments, options](Context& context) {
    const auto config = base::value_or_throw(arguments->resolve(context.environment));
    const auto model = base::value_or_throw(train::model_from(config));
    plan::Ranks ranks;
    if (options->rank >= 0) ranks.only = base::Rank{options->rank};
    const int world = base::value_or_throw(ranks_in_all(options->ranks, config));
    const auto plan = base::value_or_throw(plan::plan_memory(config, model, world, ranks));
    const auto batch = engine::global_batch(plan.options);
    const auto exposure = exposure_of(config, model, batch);
    const auto steps = config.options().train.steps;
    context.out.write(options->json ? base::json_text(json_of(plan, exposure), 2) + "\n"
                                    : text_of(plan, exposure, steps, batch));
    return base::ExitCode::done;
  };
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .summary = "Says what memory each rank of a run will take, and for what",
          .group = "Explanations",
          .details =
              "Runs the trainer's own code over memory that only counts, so the numbers are "
              "those of the run's arenas, to the byte; what lies beside them is listed. No rank is "
              "started. Where the token files are here, it says how often the run sees them.\n"
              "Example: trireme plan configs/llama3-8b.conf --ranks 64",
          .prepare = prepare_plan};
}

}  // namespace trireme::apps
