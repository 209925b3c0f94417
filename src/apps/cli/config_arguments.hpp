// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"

#include <CLI/CLI.hpp>

#include <map>
#include <memory>
#include <string>
#include <vector>

namespace trireme::apps {

/// Arguments CONFIG..., --set section.key=value and --tensor-parallel N and the like, for every
/// command that takes a configuration.
///
///   auto arguments = ConfigArguments::add_to(app);
///   return [arguments](Context& context) {
///     const auto config = base::value_or_throw(arguments->resolve(context.environment));
struct ConfigArguments {
  std::vector<std::string> files;
  std::vector<std::string> settings;
  /// Whether the command chooses a layout where keys of one are `auto`; else resolve() refuses
  /// them.
  bool chooses_layout = false;

  /// Run directory to go on with, whose resolved configuration is below all other sources; empty:
  /// none.
  std::string resume;

  /// Options that set one key each: the given values, by key.
  std::map<std::string, std::string> shortcuts;

  /// Declares them and the degrees of parallelism (degree_options()); the arguments live as long as
  /// the command's action holds them.
  static std::shared_ptr<ConfigArguments> add_to(CLI::App& app);

  /// Adds an option that sets one key.
  CLI::Option* add_shortcut(CLI::App& app, const std::string& option, const std::string& key,
                            const std::string& text);

  /// --resume RUN.
  CLI::Option* add_resume(CLI::App& app);
  /// Without files, goes on with the run that run.directory names in settings or environment, if
  /// that has a configuration of its own.
  void resume_named_run(const base::Environment& environment);

  /// Makes resolve() accept a run directory among the files, as its resolved configuration.
  void accept_run_directories();

  base::Result<config::Config> resolve(const base::Environment& environment) const;
  /// config::resolve_as_recorded() of the same arguments.
  base::Result<config::Config> resolve_as_recorded(const base::Environment& environment) const;
  /// Status that resolve() would have.
  base::Status check(const base::Environment& environment) const;

 private:
  base::Result<config::Sources> sources(const base::Environment& environment) const;
};

}  // namespace trireme::apps
