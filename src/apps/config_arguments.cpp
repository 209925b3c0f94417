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

base::Result<config::Config> ConfigArguments::resolve(const base::Environment& environment) const {
  return config::Config::resolve(
      {.files = {files.begin(), files.end()}, .environment = environment, .settings = settings});
}

}  // namespace trireme::apps
