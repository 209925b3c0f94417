// SPDX-License-Identifier: Apache-2.0
// trireme plan
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/data/exposure.hpp"
#include "trireme/engine/dataset.hpp"
#include "trireme/plan/memory_plan.hpp"
#include "trireme/plan/search.hpp"
#include "trireme/plan/time_plan.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/calibration.hpp"
#include "apps/chosen_layout.hpp"
#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/shared_options.hpp"
#include "apps/machine_comparison.hpp"
#include "apps/plan_pictures.hpp"
#include "apps/preflight/machine_out.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace trireme::apps {
namespace {

struct PlanOptions {
  int ranks = 0;
  int rank = -1;
  bool json = false;
  std::string machine;
  int nodes = 0;
  bool search = false;
  int objective = 0;
  plan::SearchRequest request = {};
  std::vector<std::filesystem::path> calibrate;
  plan::ComparisonRequest comparison = {};
  std::string machine_out;
  std::filesystem::path svg;
};

/// Memory of a run, and what else is known of it.
struct Plans {
  plan::MemoryPlan memory;
  std::optional<plan::TimePlan> time;
  std::optional<data::Exposure> exposure;
  /// Layout that was chosen, in words; empty where the configuration says which.
  std::string chosen;
  /// Pictures that were drawn.
  std::optional<plan::Pictures> pictures;
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

std::string text_of(const Plans& plans, std::int64_t steps, std::int64_t batch) {
  auto text = plans.chosen.empty() ? std::string() : plans.chosen + "\n\n";
  text += plan::text(plans.memory);
  if (plans.time) text += "\n" + plan::text(*plans.time);
  const auto& exposure = plans.exposure;
  if (exposure) text += base::format("\ndata: {}\n", data::text(*exposure, steps, batch));
  return text;
}

base::Json json_of(const Plans& plans) {
  auto json = plan::to_json(plans.memory);
  if (plans.time) json["prediction"] = plan::to_json(*plans.time);
  if (plans.exposure) json["epochs"] = plans.exposure->epochs;
  if (!plans.chosen.empty()) json["chosen"] = plans.chosen;
  if (plans.pictures) json["pictures"] = plan::to_json(*plans.pictures);
  return json;
}

/// Ranks that a search is for.
base::Result<int> searched_ranks(const PlanOptions& options, const predict::Machine& machine) {
  if (options.ranks > 0) return options.ranks;
  if (options.nodes == 0) {
    return base::usage_failure(
        "--search needs a number of ranks (a layout fills all of them); give --ranks, or --nodes");
  }
  return plan::ranks_of_nodes(machine, options.nodes);
}

/// The machine's file: the option's, or else the key's.
const std::string& machine_file(const PlanOptions& options, const config::Config& config) {
  return options.machine.empty() ? config.options().plan.machine : options.machine;
}

int search_threads() {
  return static_cast<int>(std::clamp(std::thread::hardware_concurrency(), 1U, 16U));
}

base::Result<ChosenLayout> chosen_on(const config::Config& config, const PlanOptions& options) {
  const auto keys = keys_to_choose(config);
  if (!keys.empty() && options.ranks == 0) {
    return base::usage_failure(base::format(
        "{} = auto needs a number of ranks (a layout is chosen for them); give --ranks",
        keys.front()));
  }
  return with_chosen_layout(config, options.ranks, options.machine, search_threads());
}

std::string searched(const config::Config& config, const model::ModelConfig& model,
                     const PlanOptions& options) {
  const auto& file = machine_file(options, config);
  if (file.empty()) {
    throw base::Error(base::usage_failure(
        "--search needs a machine (layouts are compared on one); give --machine or plan.machine"));
  }
  const auto machine = base::value_or_throw(predict::read_machine(file));
  auto request = options.request;
  request.ranks = base::value_or_throw(searched_ranks(options, machine));
  request.objective = static_cast<plan::Objective>(options.objective);
  request.threads = search_threads();
  const auto result = base::value_or_throw(plan::search_layouts(config, model, machine, request));
  auto json = plan::to_json(result);
  if (!options.svg.empty()) {
    json["pictures"] = plan::to_json(draw_best(options.svg, result, config, model, machine));
  }
  return options.json ? base::json_text(json, 2) + "\n" : plan::text(result);
}

plan::ComparisonRequest comparison_of(const PlanOptions& options) {
  auto request = options.comparison;
  request.ranks = options.ranks;
  request.nodes = options.nodes;
  request.objective = static_cast<plan::Objective>(options.objective);
  request.threads = search_threads();
  return request;
}

/// Refuses what only comparisons read.
void check_compares(const PlanOptions& options) {
  if (options.search || !options.comparison.machines.empty()) return;
  if (options.nodes == 0 && options.objective == 0) return;
  throw base::Error(base::usage_failure(
      base::format("{} needs --search or --compare (nothing else reads it); add one of them",
                   options.nodes > 0 ? "--nodes" : "--objective")));
}

/// Pictures of a plan; nothing where none are asked for.
std::optional<plan::Pictures> drawn(const PlanOptions& options, const config::Config& config,
                                    const plan::MemoryPlan& memory) {
  if (options.svg.empty()) return std::nullopt;
  const auto& file = machine_file(options, config);
  if (file.empty()) {
    throw base::Error(base::usage_failure(
        "--svg needs a machine (a step is drawn as it passes on one); give --machine or "
        "plan.machine"));
  }
  return draw_plan(options.svg, memory, config, base::value_or_throw(predict::read_machine(file)));
}

void add_search(CLI::App& app, PlanOptions& options, CLI::Option* rank) {
  auto* const search = app.add_flag("--search", options.search,
                                    "Compares all layouts on the machine, and says the best");
  search->excludes(rank);
  app.add_option("--nodes", options.nodes, "Nodes of the machine, in place of --ranks")
      ->type_name("N")
      ->check(in_range(1, most_ranks).description(""))
      ->excludes("--ranks");
  std::vector<std::pair<std::string, int>> words;
  for (const auto name : plan::objective_names) {
    words.emplace_back(name, static_cast<int>(words.size()));
  }
  app.add_option("--objective", options.objective,
                 "What the best has least of; with all but time, on so many ranks or fewer")
      ->type_name("WHAT")
      ->transform(number_of(words));
  app.add_option("--top", options.request.top, "Layouts to show")
      ->type_name("N")
      ->check(in_range(1, 100))
      ->needs(search);
  app.add_option("--why", options.request.why,
                 "Says why the best layout with these settings is not the best of all: tp=4,pp=8")
      ->type_name("LAYOUT")
      ->needs(search);
}

/// Fits the machine file to runs.
base::ExitCode run_calibration(const PlanOptions& options, Context& context) {
  if (options.machine.empty()) {
    throw base::Error(base::usage_failure(
        "--calibrate needs --machine (a file whose numbers the runs correct); trireme preflight "
        "writes one"));
  }
  if (!options.machine_out.empty()) {
    base::success_or_throw(check_machine_out(options.machine_out));
  }
  const auto found = base::value_or_throw(calibrate(options.calibrate, options.machine));
  context.out.write(options.json ? base::json_text(to_json(found), 2) + "\n" : text(found));
  if (!options.machine_out.empty()) {
    write_machine(found.after, "A machine file that runs have corrected.", options.machine_out);
  }
  return base::ExitCode::done;
}

Action prepare_plan(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  auto options = std::make_shared<PlanOptions>();
  add_ranks(app, options->ranks, "Ranks in all; of one replica if it is not given", "--world");
  auto* const rank = app.add_option("--rank", options->rank, "Only this rank");
  rank->type_name("R")->check(zero_or_more());
  app.add_option("--machine", options->machine,
                 "Machine file: predicts the time of a step on such machines; plan.machine if it "
                 "is not given")
      ->type_name("FILE");
  add_search(app, *options, rank);
  add_comparison(app, options->comparison);
  auto* const calibrate =
      app.add_option("--calibrate", options->calibrate,
                     "Runs on that machine: fits the machine file's shares to their steps")
          ->type_name("RUN...");
  app.add_option("--machine-out", options->machine_out,
                 "Machine file to write with what --calibrate finds; must not be there yet")
      ->type_name("FILE")
      ->needs(calibrate);
  add_pictures(app, options->svg);
  app.add_flag("--json", options->json, "One JSON object, sizes in bytes");
  return [arguments, options](Context& context) {
    if (!options->calibrate.empty()) return run_calibration(*options, context);
    check_compares(*options);
    check_picture_folder(options->svg);
    arguments->chooses_layout = true;
    const auto given = base::value_or_throw(arguments->resolve(context.environment));
    const auto model = base::value_or_throw(train::model_from(given));
    if (!options->comparison.machines.empty()) {
      context.out.write(compared(given, model, comparison_of(*options), options->json));
      return base::ExitCode::done;
    }
    if (options->search) {
      context.out.write(searched(given, model, *options));
      return base::ExitCode::done;
    }
    const auto chosen = base::value_or_throw(chosen_on(given, *options));
    const auto& config = chosen.config;
    plan::Ranks ranks;
    if (options->rank >= 0) ranks.only = base::Rank{options->rank};
    const int world = base::value_or_throw(ranks_in_all(options->ranks, config));
    Plans plans{.memory = base::value_or_throw(plan::plan_memory(config, model, world, ranks)),
                .time = {},
                .exposure = {},
                .chosen = chosen.sentence,
                .pictures = {}};
    const auto& machine = machine_file(*options, config);
    if (!machine.empty() && (!ranks.only || !options->machine.empty())) {
      // A run may need plan.machine for other things: its memory is planned all the same.
      const auto predicted = plan::check_predicted(plans.memory.options);
      if (predicted.ok() || !options->machine.empty()) {
        plans.time = base::value_or_throw(plan::plan_time(plans.memory, config.options(), machine));
      } else {
        base::log::warning("plan", "no step is predicted: {}", predicted.failure().text);
      }
    }
    plans.pictures = drawn(*options, config, plans.memory);
    const auto batch =
        engine::global_batch(plans.memory.options.schedule, plans.memory.options.sharding.mesh);
    plans.exposure = exposure_of(config, model, batch);
    context.out.write(options->json ? base::json_text(json_of(plans), 2) + "\n"
                                    : text_of(plans, config.options().train.steps, batch));
    return base::ExitCode::done;
  };
}

}  // namespace

Command plan_command() {
  return {.name = "plan",
          .summary = "Says what memory each rank of a run will take, and how long a step",
          .group = "Explanations",
          .details =
              "Runs the trainer's own code over memory that only counts, so the numbers are "
              "those of the run's arenas, to the byte; what lies beside them is listed. No rank is "
              "started. Where the token files are here, it says how often the run sees them. With "
              "--machine it replays a step on a machine that need not be here, with --search "
              "that of every layout that may be the best, and --svg draws it; --calibrate fits "
              "that machine's file to "
              "runs (docs/plan.md).\n"
              "Example: trireme plan configs/llama3-8b.conf --ranks 64 --machine "
              "configs/machines/dgx-h100.conf",
          .prepare = prepare_plan};
}

}  // namespace trireme::apps
