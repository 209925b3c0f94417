// SPDX-License-Identifier: Apache-2.0
#include "apps/plan_pictures.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/folder.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include <string>
#include <vector>

namespace trireme::apps {
namespace {

/// The configuration with the best layout in place of its own.
config::Config with_best(config::Config config, const plan::SearchResult& result) {
  const auto set = [&](const std::string& key, const std::string& value) {
    config = base::value_or_throw(config.with(key, value, config::Origin::program("--search")));
  };
  set("parallel.data", "auto");
  set("parallel.stage_layers", "");
  const auto settings = plan::settings_json(result.best.front().layout);
  for (const auto& [key, value] : settings.items()) set(key, value.get<std::string>());
  if (result.keys.numerics.on_gpus()) set("numerics.backend", "cuda");
  return config;
}

}  // namespace

void add_pictures(CLI::App& app, std::filesystem::path& folder) {
  app.add_option("--svg", folder,
                 "Also draws the layout's step, its scaling, memory and, with prices, time and "
                 "money, into this folder; needs a machine")
      ->type_name("DIR")
      ->excludes("--rank", "--compare", "--calibrate");
}

void check_picture_folder(const std::filesystem::path& folder) {
  if (folder.empty()) return;
  const auto fault = base::folder_fault(folder);
  if (fault.empty()) return;
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("--svg {} cannot be made or written to ({}); name a folder that can",
                   folder.string(), fault));
}

plan::Pictures draw_plan(const std::filesystem::path& folder, const plan::MemoryPlan& memory,
                         const config::Config& config, const predict::Machine& machine) {
  auto pictures = base::value_or_throw(plan::pictures_of(memory, config.options(), machine));
  base::success_or_throw(base::make_folders_durably(folder));
  std::vector<std::string> names;
  for (const auto& file : plan::picture_files(pictures)) {
    base::write_file_durably(folder / file.name, file.svg);
    names.push_back(file.name);
  }
  base::log::info("plan", "{}: {}", folder.string(), base::join(names, ", "));
  return pictures;
}

plan::Pictures draw_best(const std::filesystem::path& folder, const plan::SearchResult& result,
                         const config::Config& config, const model::ModelConfig& model,
                         const predict::Machine& machine) {
  const auto with = with_best(config, result);
  const auto memory =
      base::value_or_throw(plan::plan_memory(with, model, result.best.front().layout.ranks));
  return draw_plan(folder, memory, with, machine);
}

}  // namespace trireme::apps
