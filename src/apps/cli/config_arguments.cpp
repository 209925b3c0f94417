// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/config_arguments.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/shell_word.hpp"
#include "trireme/base/text.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/train/continuation.hpp"

#include "apps/chosen_layout.hpp"
#include "apps/cli/shared_options.hpp"
#include "apps/cli/suggestion.hpp"

#include <algorithm>
#include <filesystem>
#include <optional>

namespace trireme::apps {
namespace {

/// Settings of the launch contract, as values of keys.
base::Result<std::vector<config::Launched>> launched_values(const base::Environment& environment) {
  const auto contract = launch::read_contract(environment);
  if (!contract) return contract.failure();
  std::vector<config::Launched> values;
  if (!contract->active()) return values;
  for (const auto& setting : contract->settings()) {
    if (setting.option->sets_any_key) {
      const auto equals = setting.value.find('=');
      values.push_back(
          {setting.value.substr(0, equals), setting.value.substr(equals + 1), setting.origin});
    } else if (!setting.option->key.empty()) {
      values.push_back({std::string(setting.option->key), setting.value, setting.origin});
    }
    for (const auto& key : setting.option->keys) {
      values.push_back({key, setting.value, setting.origin});
    }
  }
  return values;
}

constexpr std::string_view directory_key = "run.directory";

bool is_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::is_regular_file(folder / config::resolved_file_name, ignored);
}

/// The run that a setting names; none of another key, and of a value that is refused later.
std::optional<std::string> directory_in(const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos ||
      base::trimmed(std::string_view(setting).substr(0, equals)) != directory_key) {
    return std::nullopt;
  }
  const auto value =
      schema::parse_value(*schema::find_key(directory_key), setting.substr(equals + 1));
  const auto* const path = value.ok() ? std::get_if<std::string>(&*value) : nullptr;
  return path == nullptr ? std::nullopt : std::optional(*path);
}

base::Status check_resume(const ConfigArguments& arguments) {
  const auto& run = arguments.resume;
  if (run.empty()) return {};
  if (!is_run(run)) {
    // Folders in a run: its checkpoints, and a step.
    for (const auto* const up : {"..", "../.."}) {
      const auto around = std::filesystem::path(run) / up;
      if (!is_run(around)) continue;
      const auto plain = around.lexically_normal();
      const auto name = plain.has_filename() ? plain : plain.parent_path();
      return base::usage_failure(base::format(
          "--resume {}: this is a folder in a run, which goes on from its newest step; "
          "write --resume {}",
          run, base::shell_word(name.string())));
    }
    return base::usage_failure(base::format(
        "--resume {}: there is no '{}' (every run that has begun has one); name a run directory, "
        "or start a run with its configuration: trireme train CONFIG",
        run, (std::filesystem::path(run) / config::resolved_file_name).string()));
  }
  for (const auto& setting : arguments.settings) {
    const auto named = directory_in(setting);
    std::error_code ignored;
    if (!named || std::filesystem::equivalent(*named, run, ignored)) continue;
    return base::usage_failure(base::format(
        "--resume {} does not go with --set {} (a run goes on in its own folder); leave one out",
        run, setting));
  }
  return {};
}

/// Settings as positional arguments, which other trainers accept as "train.steps=5", some with
/// dashes or a plus before it.
base::Status check_files(const std::vector<std::string>& files) {
  for (const auto& file : files) {
    const auto equals = file.find('=');
    if (equals == std::string::npos || base::exists(file)) continue;
    const auto begin = std::min(file.find_first_not_of("+-"), equals);
    const auto setting = setting_meant(file.substr(begin, equals - begin), file.substr(equals + 1));
    if (setting.empty()) continue;
    return base::usage_failure(base::format(
        "'{}' is no file (arguments are configuration files; a single key is set by an option); "
        "write {}",
        file, setting));
  }
  return {};
}

}  // namespace

std::shared_ptr<ConfigArguments> ConfigArguments::add_to(CLI::App& app) {
  auto arguments = std::make_shared<ConfigArguments>();
  app.add_option("CONFIG", arguments->files,
                 "Configuration files; where two set the same key, the later one wins")
      ->type_name("FILE");
  app.add_option("--set", arguments->settings,
                 "Sets one key over files and environment; may be repeated "
                 "(keys: trireme config reference)")
      ->type_name("SECTION.KEY=VALUE")
      ->allow_extra_args(false)
      ->group("Configuration");
  for (const auto& degree : degree_options()) {
    auto* const option = arguments->add_shortcut(
        app, degree.name, degree.key, base::format("{} (key {})", degree.meaning, degree.key));
    option->type_name("N");
    add_earlier(app, degree.earlier, arguments->shortcuts[degree.key], option);
  }
  return arguments;
}

CLI::Option* ConfigArguments::add_shortcut(CLI::App& app, const std::string& option,
                                           const std::string& key, const std::string& text) {
  return app.add_option(option, shortcuts[key], text)->group("Configuration");
}

CLI::Option* ConfigArguments::add_resume(CLI::App& app) {
  return app
      .add_option("--resume", resume,
                  "Goes on with this run as it was configured; files and settings besides change "
                  "what they name")
      ->type_name("RUN")
      ->check(CLI::Validator(
          [](const std::string& run) {
            return run.empty() ? std::string(
                                     "the name of the run is empty (a variable of the shell "
                                     "that is not set?)")
                               : std::string();
          },
          ""));
}

void ConfigArguments::resume_named_run(const base::Environment& environment) {
  if (!files.empty() || !resume.empty()) return;
  std::string run =
      environment.get(schema::find_key(directory_key)->environment_name()).value_or("");
  for (const auto& setting : settings) run = directory_in(setting).value_or(run);
  if (!run.empty() && is_run(run)) resume = run;
}

void ConfigArguments::accept_run_directories() {
  for (auto& file : files) {
    if (base::is_directory(file)) {
      file = (std::filesystem::path(file) / config::resolved_file_name).string();
    }
  }
}

base::Status ConfigArguments::check(const base::Environment& environment) const {
  const auto config = resolve(environment);
  return config.ok() ? base::Status{} : config.failure();
}

base::Result<config::Sources> ConfigArguments::sources(const base::Environment& environment) const {
  if (auto status = check_files(files); !status.ok()) return status.failure();
  if (auto status = check_resume(*this); !status.ok()) return status.failure();
  std::vector<std::filesystem::path> all_files(files.begin(), files.end());
  auto all_settings = settings;
  if (!resume.empty()) {
    all_files.insert(all_files.begin(), std::filesystem::path(resume) / config::resolved_file_name);
    const auto text = schema::value_text(*schema::find_key(directory_key), resume);
    all_settings.insert(all_settings.begin(), base::format("{}={}", directory_key, text));
  }
  for (const auto& [key, value] : shortcuts) {
    if (!value.empty()) all_settings.push_back(base::format("{}={}", key, value));
  }
  auto launched = launched_values(environment);
  if (!launched) return launched.failure();
  return config::Sources{.files = std::move(all_files),
                         .environment = environment,
                         .settings = std::move(all_settings),
                         .launched = *std::move(launched)};
}

base::Result<config::Config> ConfigArguments::resolve(const base::Environment& environment) const {
  const auto given = sources(environment);
  if (!given.ok()) return given.failure();
  constexpr std::string_view found[] = {"auto", train::own_value};
  auto config =
      resume.empty() ? config::Config::resolve(*given) : config::resolve_resumed(*given, found);
  if (!config.ok() || chooses_layout) return config;
  if (auto status = check_chosen(*config); !status.ok()) return status.failure();
  return config;
}

base::Result<config::Config> ConfigArguments::resolve_as_recorded(
    const base::Environment& environment) const {
  const auto given = sources(environment);
  return given.ok() ? config::resolve_as_recorded(*given) : given.failure();
}

}  // namespace trireme::apps
