#include "apps/config_arguments.hpp"

#include "trireme/base/format.hpp"
#include "trireme/launch/contract.hpp"

namespace trireme::apps {
namespace {

/// What the launch asks for, as values of keys.
base::Result<std::vector<config::Launched>> launched_values(const base::Environment& environment) {
  const auto contract = launch::read_contract(environment);
  if (!contract) return contract.failure();
  std::vector<config::Launched> values;
  if (!contract->active()) return values;
  for (const auto& given : contract->given()) {
    if (given.term->is_setting) {
      const auto equals = given.value.find('=');
      values.push_back(
          {given.value.substr(0, equals), given.value.substr(equals + 1), given.origin});
    } else if (!given.term->key.empty()) {
      values.push_back({std::string(given.term->key), given.value, given.origin});
    }
  }
  return values;
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
  return arguments;
}

CLI::Option* ConfigArguments::add_shortcut(CLI::App& app, const std::string& option,
                                           const std::string& key, const std::string& text) {
  return app.add_option(option, shortcuts[key], text)->group("Configuration");
}

void ConfigArguments::add_layout_options(CLI::App& app) {
  add_shortcut(app, "--tensor-parallel", "parallel.tensor",
               "Ranks that share every matrix (key parallel.tensor)")
      ->type_name("N");
  add_shortcut(app, "--pipeline-parallel", "parallel.pipeline",
               "Stages that share the layers (key parallel.pipeline)")
      ->type_name("N");
}

base::Result<config::Config> ConfigArguments::resolve(const base::Environment& environment) const {
  auto all_settings = settings;
  for (const auto& [key, value] : shortcuts) {
    if (!value.empty()) all_settings.push_back(base::format("{}={}", key, value));
  }
  auto launched = launched_values(environment);
  if (!launched) return launched.failure();
  return config::Config::resolve({.files = {files.begin(), files.end()},
                                  .environment = environment,
                                  .settings = all_settings,
                                  .launched = *std::move(launched)});
}

}  // namespace trireme::apps
