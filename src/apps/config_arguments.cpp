#include "apps/config_arguments.hpp"

namespace trireme::apps {

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
    if (!value.empty()) all_settings.push_back(key + "=" + value);
  }
  return config::Config::resolve({.files = {files.begin(), files.end()},
                                  .environment = environment,
                                  .settings = all_settings});
}

}  // namespace trireme::apps
