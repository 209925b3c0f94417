// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/config.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>

namespace trireme::config {
namespace {

using base::format;

const schema::Key& key_of(std::string_view name) {
  const auto* key = schema::find_key(name);
  TRIREME_EXPECT(key != nullptr, format("there is no key '{}'", name));
  return *key;
}

std::size_t index_of(const schema::Key& key) {
  return static_cast<std::size_t>(&key - schema::keys().data());
}

}  // namespace

std::string Origin::text() const {
  switch (kind) {
    case Kind::standard:
      return "default";
    case Kind::file:
      return format("{}:{}", where, line);
    case Kind::launch:
    case Kind::environment:
    case Kind::program:
      return where;
    case Kind::command_line:
      return "--set";
  }
  return "";
}

Config::Config() {
  static const auto defaults = [] {
    std::vector<Entry> entries;
    for (const auto& key : schema::keys()) {
      auto value = schema::parse_value(key, key.default_text);
      TRIREME_ENSURE(value.ok(), value.failure().text);
      entries.push_back({*std::move(value), {}});
    }
    return entries;
  }();
  entries_ = defaults;
  for (const auto& key : schema::keys()) key.store(options_, entries_[index_of(key)].value);
}

void Config::set(const schema::Key& key, schema::Value value, Origin origin) {
  key.store(options_, *schema::parse_value(key, key.default_text));
  key.store(options_, value);
  entries_[index_of(key)] = {std::move(value), std::move(origin)};
}

const Config::Entry& Config::entry(std::string_view key) const {
  return entries_[index_of(key_of(key))];
}

bool Config::automatic(std::string_view key) const {
  return std::holds_alternative<schema::Automatic>(entry(key).value);
}

bool Config::given(std::string_view key) const {
  return origin(key).kind != Origin::Kind::standard;
}
const Origin& Config::origin(std::string_view key) const {
  return entry(key).origin;
}
const schema::Value& Config::value(std::string_view key) const {
  return entry(key).value;
}

std::string Config::shown(std::string_view key) const {
  return schema::value_text(key_of(key), entry(key).value);
}

std::string Config::cited(std::string_view key) const {
  const auto text = shown(key);
  return format("{} = {} ({})", key, text.empty() ? "''" : text, origin(key).text());
}

base::Result<Config> Config::with(std::string_view key, std::string_view text,
                                  const Origin& origin) const {
  auto value = schema::parse_value(key_of(key), text);
  if (!value) {
    return base::usage_failure(format("{}: {}", origin.text(), value.failure().text));
  }
  Config changed = *this;
  changed.set(key_of(key), *std::move(value), origin);
  return changed;
}

std::string Config::resolved_text(Origins origins) const {
  std::string text;
  for (const auto& section : schema::sections()) {
    text += format("{}[{}]\n", text.empty() ? "" : "\n", section.name);
    for (const auto& key : schema::keys()) {
      if (key.section != section.name) continue;
      const auto full_name = key.full_name();
      const auto value = shown(full_name);
      const auto line = format("{} ={}{}", key.name, value.empty() ? "" : " ", value);
      text += origins == Origins::shown ? format("{:<40} # {}\n", line, origin(full_name).text())
                                        : line + "\n";
    }
  }
  return text;
}

std::uint64_t Config::hash() const {
  std::vector<std::string_view> names;
  for (const auto& section : schema::sections()) names.push_back(section.name);
  return fingerprint_of_sections(names);
}

std::uint64_t Config::fingerprint_of_sections(std::span<const std::string_view> names) const {
  base::Fnv1a hash;
  for (const auto& key : schema::keys()) {
    if (std::find(names.begin(), names.end(), key.section) == names.end()) continue;
    const auto full_name = key.full_name();
    hash.add(format("{}={}\n", full_name, shown(full_name)));
  }
  return hash.value();
}

bool Config::operator==(const Config& other) const {
  return std::equal(entries_.begin(), entries_.end(), other.entries_.begin(), other.entries_.end(),
                    [](const Entry& a, const Entry& b) { return a.value == b.value; });
}

std::vector<Difference> diff(const Config& first, const Config& second) {
  std::vector<Difference> differences;
  for (const auto& key : schema::keys()) {
    const auto name = key.full_name();
    if (first.value(name) == second.value(name)) continue;
    differences.push_back({name, first.shown(name), second.shown(name), first.origin(name),
                           second.origin(name), key.concern});
  }
  return differences;
}

std::filesystem::path run_directory(const Config& config) {
  const auto& run = config.options().run;
  return run.directory ? std::filesystem::path(*run.directory)
                       : std::filesystem::path("runs") / run.name;
}

std::string run_label(const Config& config) {
  if (config.given("run.name")) return config.options().run.name;
  // A folder may be given with a slash at its end.
  const auto inside = base::absolute(run_directory(config) / ".").lexically_normal();
  return inside.parent_path().filename().string();
}

}  // namespace trireme::config
