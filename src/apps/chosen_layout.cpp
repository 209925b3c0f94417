// SPDX-License-Identifier: Apache-2.0
#include "apps/chosen_layout.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/format.hpp"
#include "trireme/plan/search.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/runtime/launcher_environment.hpp"
#include "trireme/train/trainer.hpp"

#include <algorithm>

namespace trireme::apps {
namespace {

constexpr std::string_view recompute_key = "train.activation_checkpointing";

/// Keys that a search chooses.
std::vector<std::string> searched_keys() {
  std::vector<std::string> keys;
  const auto settings = plan::settings_json({});
  for (const auto& [key, value] : settings.items()) keys.push_back(key);
  return keys;
}

std::string milliseconds_text(const plan::JudgedLayout& layout) {
  return base::format("{:.1f} ms", 1e3 * predict::seconds_of(layout.step->total()));
}

std::string sentence_of(const plan::SearchResult& result) {
  const auto& best = result.best.front();
  auto text = base::format("{} is the best of {} on {}, with a predicted step of {}",
                           plan::text(best.layout),
                           base::counted(static_cast<std::int64_t>(result.legal), "layout"),
                           result.machine, milliseconds_text(best));
  if (result.best.size() < 2) return text;
  const auto& next = result.best[1];
  return text + base::format("; next: {}, {}", plan::text(next.layout), next.lost_because);
}

base::Result<config::Config> with_settings(config::Config config,
                                           const plan::LayoutChoice& choice) {
  const auto settings = plan::settings_json(choice);
  for (const auto& [key, value] : settings.items()) {
    if (!config.automatic(key)) continue;
    auto with = config.with(key, value.get<std::string>(), config::Origin::program("auto"));
    if (!with) return with.failure();
    config = *std::move(with);
  }
  return config;
}

}  // namespace

std::vector<std::string> keys_to_choose(const config::Config& config) {
  auto keys = searched_keys();
  std::erase_if(keys, [&](const std::string& key) { return !config.automatic(key); });
  // By itself it is chosen for a layout that is given.
  if (keys == std::vector<std::string>{std::string(recompute_key)}) keys.clear();
  return keys;
}

base::Status check_chosen(const config::Config& config) {
  const auto keys = keys_to_choose(config);
  if (keys.empty()) return {};
  return base::usage_failure(base::format(
      "{} = auto is chosen when a run starts, and by trireme plan --machine, for their "
      "ranks (nothing else knows how many there are); give a value",
      keys.front()));
}

base::Result<ChosenLayout> with_chosen_layout(const config::Config& config, int ranks,
                                              const std::string& machine, int threads) {
  const auto keys = keys_to_choose(config);
  if (keys.empty()) return ChosenLayout{config, {}};
  const auto& file = machine.empty() ? config.options().plan.machine : machine;
  if (file.empty()) {
    return base::usage_failure(base::format(
        "{} = auto needs plan.machine (layouts are compared on a machine); name its file, one of "
        "configs/machines or what trireme preflight --machine-out writes, or give a value",
        keys.front()));
  }
  if (!config.options().parallel.stage_layers.empty()) {
    return base::usage_failure(base::format(
        "parallel.stage_layers does not go with {} = auto (layouts are compared with layers "
        "divided over stages by their work); leave it out, or give values for what is auto",
        keys.front()));
  }
  const auto described = predict::read_machine(file);
  if (!described) return described.failure();
  const auto model = train::model_from(config);
  if (!model) return model.failure();
  plan::SearchRequest request{
      .ranks = ranks, .top = 2, .why = "", .explains_known = false, .threads = threads};
  for (auto& key : searched_keys()) {
    if (!config.automatic(key)) request.kept.push_back(std::move(key));
  }
  if (!config.automatic("parallel.data")) request.kept.emplace_back("parallel.data");
  const auto found = plan::search_layouts(config, *model, *described, request);
  if (!found) return found.failure();
  auto with = with_settings(config, found->best.front().layout);
  if (!with) return with.failure();
  return ChosenLayout{*std::move(with), sentence_of(*found)};
}

base::Result<ChosenLayout> with_chosen_layout(const config::Config& config,
                                              const base::Environment& environment) {
  const auto identity = runtime::identify(environment);
  if (!identity) return identity.failure();
  const auto keys = keys_to_choose(config);
  if (keys.empty()) return ChosenLayout{config, {}};
  if (identity->launcher != runtime::Launcher::none && !identity->announced_tasks) {
    return base::usage_failure(base::format(
        "{} = auto needs a number of ranks before MPI starts, which {} does not announce (a "
        "layout is chosen for them); start with mpirun or srun, or give the values that trireme "
        "plan --search finds",
        keys.front(), runtime::name(identity->launcher)));
  }
  return with_chosen_layout(config, identity->announced_tasks.value_or(1));
}

}  // namespace trireme::apps
