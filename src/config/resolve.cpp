// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/base/text.hpp"
#include "trireme/config/checks.hpp"
#include "trireme/config/config.hpp"
#include "trireme/config/file.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/schema/text.hpp"

#include <algorithm>
#include <map>

namespace trireme::config {

using base::format;

/// Lays the sources over the defaults, weakest first, and gathers what is wrong.
class Resolver {
 public:
  /// Origins of values in a run's resolved configuration: the places in that file, or what the run
  /// recorded.
  enum class Origins { places, recorded };

  static base::Result<Config> resolve(const Sources& sources, Origins origins,
                                      std::span<const std::string_view> found = {});

 private:
  void add_file(const std::filesystem::path& path, Origins origins);
  void add_launched(const Launched& value) {
    assign({value.key, value.text, {Origin::Kind::launch, value.origin, 0}}, value.origin);
  }
  void add_environment(const base::Environment& environment);
  void add_setting(const std::string& setting);
  base::Result<Config> finish();
  /// Sets a value; `place` names the source of this assignment in errors.
  void assign(const Assignment& assignment, const std::string& place);

  Config config_;
  /// Recorded origins of values that a run has found itself, and that are to be found again.
  std::span<const std::string_view> found_;
  std::vector<std::string> mistakes_;
};

namespace {

/// True in a folder with the files of a run.
bool is_run(const std::filesystem::path& folder) {
  std::error_code ignored;
  return std::filesystem::exists(folder / "model.json", ignored);
}

/// Lets the resolved configuration of a run name the folder that it is in.
void place_in_folder(std::vector<Assignment>& assignments, const std::filesystem::path& file) {
  const auto folder = file.has_parent_path() ? file.parent_path() : std::filesystem::path(".");
  if (file.filename() != resolved_file_name || !is_run(folder)) return;
  constexpr std::string_view name = "run.directory";
  const auto text = schema::value_text(*schema::find_key(name), folder.string());
  for (auto& assignment : assignments) {
    if (assignment.name == name) assignment.text = text;
  }
}

/// Makes values `auto` again that a run has found itself.
void forget_found(Assignment& assignment, std::span<const std::string_view> found) {
  const auto* key = schema::find_key(assignment.name);
  if (key == nullptr || !key->allows_auto() || found.empty()) return;
  const bool is_found = std::find(found.begin(), found.end(), assignment.recorded) != found.end();
  const bool begins_anew = assignment.name == "checkpoint.load" && assignment.text == "none";
  if (is_found || begins_anew) assignment.text = "auto";
}

}  // namespace

void Resolver::add_file(const std::filesystem::path& path, Origins origins) {
  auto contents = read_file(path);
  std::move(contents.mistakes.begin(), contents.mistakes.end(), std::back_inserter(mistakes_));
  place_in_folder(contents.assignments, path);
  for (auto& assignment : contents.assignments) {
    const auto place = assignment.origin.text();
    forget_found(assignment, found_);
    if (origins == Origins::recorded && !assignment.recorded.empty()) {
      const bool standard = assignment.recorded == Origin{}.text();
      assignment.origin = standard ? Origin{} : Origin::program(assignment.recorded);
    }
    assign(assignment, place);
  }
}

void Resolver::assign(const Assignment& assignment, const std::string& place) {
  const auto* key = schema::find_key(assignment.name);
  if (key == nullptr) {
    const auto suggestion = schema::key_suggestion(assignment.name);
    mistakes_.push_back(format("{}: there is no key '{}' (nothing would read it){}", place,
                               base::printable(assignment.name),
                               suggestion.empty() ? "; see trireme config reference" : suggestion));
    return;
  }
  auto value = schema::parse_value(*key, assignment.text);
  if (!value) {
    mistakes_.push_back(format("{}: {}", place, value.failure().text));
    return;
  }
  config_.set(*key, *std::move(value), assignment.origin);
}

void Resolver::add_environment(const base::Environment& environment) {
  constexpr std::string_view prefix = "TRIREME_";
  for (const auto& [name, text] : environment.variables()) {
    if (!name.starts_with(prefix) || name.find("__", prefix.size()) == std::string::npos) continue;
    const auto keys = schema::keys();
    const auto key =
        std::find_if(keys.begin(), keys.end(), [&wanted = name](const schema::Key& candidate) {
          return candidate.environment_name() == wanted;
        });
    if (key != keys.end()) {
      assign({key->full_name(), text, {Origin::Kind::environment, name, 0}}, name);
      continue;
    }
    std::vector<std::string> names;
    for (const auto& candidate : keys) names.push_back(candidate.environment_name());
    const auto near = base::did_you_mean(name, names);
    mistakes_.push_back(format("{}: there is no key of this name (nothing would read it){}",
                               base::printable(name), near.empty() ? "; unset it" : near));
  }
}

void Resolver::add_setting(const std::string& setting) {
  const auto equals = setting.find('=');
  if (equals == std::string::npos) {
    mistakes_.push_back(
        format("--set {}: there is no '=' (a setting is section.key=value); write "
               "--set {}=VALUE",
               schema::quoted_if_odd(setting), base::printable(base::trimmed(setting))));
    return;
  }
  const std::string name(base::trimmed(std::string_view(setting).substr(0, equals)));
  assign({name, setting.substr(equals + 1), {Origin::Kind::command_line, {}, 0}},
         format("--set {}", schema::quoted_if_odd(setting)));
}

base::Result<Config> Resolver::finish() {
  // Values that were refused stand at their defaults: whether they agree says nothing then.
  if (mistakes_.empty()) {
    if (auto status = check(config_); !status) return status.failure();
    return config_;
  }
  constexpr std::size_t most = 20;
  std::string text;
  for (std::size_t index = 0; index < std::min(most, mistakes_.size()); ++index) {
    text += (index == 0 ? "" : "\n") + mistakes_[index];
  }
  if (mistakes_.size() > most) text += format("\n... and {} more", mistakes_.size() - most);
  return base::usage_failure(std::move(text));
}

base::Result<Config> Resolver::resolve(const Sources& sources, Origins origins,
                                       std::span<const std::string_view> found) {
  Resolver resolver;
  resolver.found_ = found;
  for (const auto& path : sources.files) resolver.add_file(path, origins);
  for (const auto& value : sources.launched) resolver.add_launched(value);
  resolver.add_environment(sources.environment);
  for (const auto& setting : sources.settings) resolver.add_setting(setting);
  return resolver.finish();
}

base::Result<Config> Config::resolve(const Sources& sources) {
  return Resolver::resolve(sources, Resolver::Origins::places);
}

base::Result<Config> resolve_as_recorded(const Sources& sources) {
  return Resolver::resolve(sources, Resolver::Origins::recorded);
}

base::Result<Config> resolve_resumed(const Sources& sources,
                                     std::span<const std::string_view> found) {
  return Resolver::resolve(sources, Resolver::Origins::recorded, found);
}

namespace {

/// True if two texts mean different values; texts without a value are compared as texts.
bool differs(const schema::Key& key, const std::string& first, const std::string& second) {
  const auto one = schema::parse_value(key, first);
  const auto other = schema::parse_value(key, second);
  return one.ok() && other.ok() ? *one != *other : first != second;
}

}  // namespace

std::vector<Difference> replaced_values(std::span<const std::filesystem::path> files) {
  // Assignments of the files so far, by key.
  std::map<std::string, Assignment> standing;
  std::vector<Difference> replaced;
  for (const auto& file : files) {
    std::map<std::string, Assignment> own;
    const auto contents = read_file(file);
    for (const auto& assignment : contents.assignments) own[assignment.name] = assignment;
    for (auto& [name, assignment] : own) {
      const auto* key = schema::find_key(name);
      const auto before = standing.find(name);
      if (key != nullptr && before != standing.end() &&
          differs(*key, before->second.text, assignment.text)) {
        replaced.push_back({name, before->second.text, assignment.text, before->second.origin,
                            assignment.origin, key->concern});
      }
      standing[name] = std::move(assignment);
    }
  }
  return replaced;
}

}  // namespace trireme::config
