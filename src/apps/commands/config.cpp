// SPDX-License-Identifier: Apache-2.0
// trireme config show|check|reference|diff
#include "trireme/config/config.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/config/checks.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/runtime/thread_variables.hpp"
#include "trireme/schema/reference.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/config_arguments.hpp"
#include "apps/cli/config_check.hpp"

#include <filesystem>

namespace trireme::apps {
namespace {

using base::ExitCode;
using base::format;
using base::Json;

struct JsonOf {
  Json operator()(const schema::Automatic& /*unused*/) const { return "auto"; }
  Json operator()(const std::vector<schema::WeightedText>& list) const {
    auto array = Json::array();
    for (const auto& entry : list) {
      array.push_back(Json{{"text", entry.text}, {"weight", entry.weight}});
    }
    return array;
  }
  template <typename T>
  Json operator()(const T& value) const {
    return value;
  }
};

Json json_of(const config::Config& config) {
  Json object = Json::object();
  for (const auto& key : schema::keys()) {
    const auto name = key.full_name();
    object[name] = {{"value", std::visit(JsonOf{}, config.value(name))},
                    {"text", config.shown(name)},
                    {"origin", config.origin(name).text()}};
  }
  return object;
}

struct ShowOptions {
  bool origin = false;
  bool json = false;
  std::string get;
};

/// Value of one key, for scripts: a text is its bytes alone. The run directory is the one that a
/// run uses.
std::string value_text(const config::Config& config, const std::string& name) {
  if (schema::find_key(name) == nullptr) {
    throw base::Error(base::ExitCode::usage,
                      format("--get: there is no key '{}'{}", name, schema::key_suggestion(name)));
  }
  if (name == "run.directory") return config::run_directory(config).string();
  const auto* text = std::get_if<std::string>(&config.value(name));
  return text == nullptr ? config.shown(name) : *text;
}

Action prepare_show(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  arguments->add_resume(app);
  auto options = std::make_shared<ShowOptions>();
  app.add_flag("--origin", options->origin, "Says behind each value where it comes from");
  app.add_flag("--json", options->json, "One JSON object: key to value, text and origin");
  app.add_option("--get", options->get, "The value of one key alone, for scripts")
      ->type_name("SECTION.KEY");
  return [arguments, options](Context& context) {
    arguments->accept_run_directories();
    const auto config = base::value_or_throw(arguments->resolve_as_recorded(context.environment));
    if (!options->get.empty()) {
      context.out.write(value_text(config, options->get) + "\n");
      return ExitCode::done;
    }
    using Origins = config::Config::Origins;
    context.out.write(
        options->json ? base::json_text(json_of(config), 2) + "\n"
                      : config.resolved_text(options->origin ? Origins::shown : Origins::hidden));
    return ExitCode::done;
  };
}

Action prepare_check(CLI::App& app) {
  auto arguments = ConfigArguments::add_to(app);
  arguments->add_resume(app);
  return [arguments](Context& context) {
    arguments->accept_run_directories();
    arguments->resume_named_run(context.environment);
    arguments->chooses_layout = true;
    const auto config = base::value_or_throw(arguments->resolve(context.environment));
    base::success_or_throw(runtime::check_thread_variables(context.environment));
    const auto verdict = base::value_or_throw(check_run(config));
    for (const auto& text : config::notes(config)) base::log::warning("config", "{}", text);
    for (const auto& text : verdict.notes) base::log::warning("config", "{}", text);
    for (const auto& text : replacement_texts(arguments->files)) {
      base::log::warning("config", "{}", text);
    }
    std::size_t given_count = 0;
    for (const auto& key : schema::keys()) given_count += config.given(key.full_name()) ? 1 : 0;
    context.out.write(format("correct: {} of {} keys are set, the others stand at their defaults\n",
                             given_count, schema::keys().size()));
    if (!verdict.exposure.empty()) context.out.write(format("data: {}\n", verdict.exposure));
    for (const auto& text : verdict.unchecked) {
      context.out.write(base::repaired_utf8(format("not checked: {}\n", text)));
    }
    for (const auto& text : verdict.missing) {
      context.out.write(base::repaired_utf8(format("missing: {}\n", text)));
    }
    return ExitCode::done;
  };
}

Action prepare_reference(CLI::App& /*app*/) {
  return [](Context& context) {
    context.out.write(schema::reference_markdown());
    return ExitCode::done;
  };
}

/// A configuration file, or a run directory, which holds its resolved one.
config::Config load_one(const std::filesystem::path& path) {
  const auto file = base::is_directory(path) ? path / config::resolved_file_name : path;
  return base::value_or_throw(
      config::resolve_as_recorded({.files = {file}, .environment = {}, .settings = {}}));
}

std::string shown(const std::string& value) {
  return value.empty() ? "(empty)" : value;
}

struct DiffOptions {
  std::string first;
  std::string second;
  bool json = false;
};

Action prepare_diff(CLI::App& app) {
  auto options = std::make_shared<DiffOptions>();
  app.add_option("A", options->first, "Configuration file or run directory")
      ->required()
      ->type_name("PATH");
  app.add_option("B", options->second, "What to compare it with")->required()->type_name("PATH");
  app.add_flag("--json", options->json, "One JSON object a line");
  return [options](Context& context) {
    for (const auto& difference :
         config::diff(load_one(options->first), load_one(options->second))) {
      const auto first_origin = difference.first_origin.text();
      const auto second_origin = difference.second_origin.text();
      const Json line{
          {"key", difference.key},          {"first", difference.first},
          {"second", difference.second},    {"first_origin", first_origin},
          {"second_origin", second_origin}, {"concerns", schema::name(difference.concern)}};
      context.out.write(options->json ? base::json_text(line) + "\n"
                                      : format("{}: {} ({}) -> {} ({})\n", difference.key,
                                               shown(difference.first), first_origin,
                                               shown(difference.second), second_origin));
    }
    return ExitCode::done;
  };
}

}  // namespace

Command config_command() {
  return {
      .name = "config",
      .summary = "Shows, checks, documents and compares configurations",
      .group = "Configuration",
      .subcommands = {
          {.name = "show",
           .summary = "Prints every key and value of a configuration, as a file that can be loaded",
           .details = "FILE may be a run directory: its resolved configuration, with --origin as "
                      "the run wrote it down.",
           .prepare = prepare_show},
          {.name = "check",
           .summary = "Says whether a configuration is right, and names every mistake if not",
           .details =
               "Asks every rule that needs no ranks: of values, of the model, of its layout on the "
               "fewest ranks, of batches and stages, of token files and of the run that it goes on "
               "with. What it could not ask (a tokenizer that is "
               "not there yet, say) it says, and which data are missing here. Warns "
               "where one file replaces what another says. FILE may be a run directory.",
           .prepare = prepare_check},
          {.name = "reference",
           .summary = "Prints what every key means (docs/configuration.md)",
           .prepare = prepare_reference},
          {.name = "diff",
           .summary = "Prints the keys whose values differ between two files or run directories",
           .details = "Compares what the files say over the defaults; the environment is not "
                      "asked. Equal configurations print nothing.",
           .prepare = prepare_diff},
      }};
}

}  // namespace trireme::apps
