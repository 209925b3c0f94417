#include "trireme/config/config.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"

#include <algorithm>
#include <limits>

namespace trireme::config {
namespace {

using base::format;

std::size_t index_of(std::string_view name) {
  const auto* key = find_key(name);
  TRIREME_EXPECT(key != nullptr, format("there is no key '{}'", name));
  return static_cast<std::size_t>(key - schema().data());
}

const Key& key_of(std::string_view name) {
  return schema()[index_of(name)];
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
    for (const auto& key : schema()) {
      auto value = parse_value(key, key.default_text);
      TRIREME_ENSURE(value.ok(), value.failure().text);
      entries.push_back({*std::move(value), {}});
    }
    return entries;
  }();
  entries_ = defaults;
}

const Config::Entry& Config::entry(std::string_view key) const {
  return entries_[index_of(key)];
}

template <typename T>
const T& Config::get(std::string_view key, std::span<const Type> types) const {
  const auto type = key_of(key).type;
  TRIREME_EXPECT(std::find(types.begin(), types.end(), type) != types.end(),
                 format("'{}' holds a {}", key, name(type)));
  const auto* value = std::get_if<T>(&entry(key).value);
  TRIREME_EXPECT(value != nullptr, format("'{}' is auto here: ask automatic() before", key));
  return *value;
}

std::int64_t Config::integer(std::string_view key) const {
  constexpr Type types[] = {Type::integer};
  return get<std::int64_t>(key, types);
}

int Config::count(std::string_view key) const {
  const auto number = integer(key);
  TRIREME_EXPECT(number >= 0 && number <= std::numeric_limits<int>::max(),
                 format("'{}' = {} is no int", key, number));
  return static_cast<int>(number);
}

double Config::real(std::string_view key) const {
  constexpr Type types[] = {Type::real};
  return get<double>(key, types);
}

bool Config::flag(std::string_view key) const {
  constexpr Type types[] = {Type::flag};
  return get<bool>(key, types);
}

const std::string& Config::text(std::string_view key) const {
  constexpr Type types[] = {Type::text, Type::choice};
  return get<std::string>(key, types);
}

std::int64_t Config::bytes(std::string_view key) const {
  constexpr Type types[] = {Type::bytes};
  return get<std::int64_t>(key, types);
}

double Config::seconds(std::string_view key) const {
  constexpr Type types[] = {Type::seconds};
  return get<double>(key, types);
}

const std::vector<std::int64_t>& Config::integers(std::string_view key) const {
  constexpr Type types[] = {Type::integers};
  return get<std::vector<std::int64_t>>(key, types);
}

const std::vector<std::string>& Config::texts(std::string_view key) const {
  constexpr Type types[] = {Type::texts};
  return get<std::vector<std::string>>(key, types);
}

const std::vector<WeightedText>& Config::weighted_texts(std::string_view key) const {
  constexpr Type types[] = {Type::weighted_texts};
  return get<std::vector<WeightedText>>(key, types);
}

bool Config::automatic(std::string_view key) const {
  return std::holds_alternative<Automatic>(entry(key).value);
}

std::int64_t Config::integer_or(std::string_view key, std::int64_t otherwise) const {
  return automatic(key) ? otherwise : integer(key);
}
int Config::count_or(std::string_view key, int otherwise) const {
  return automatic(key) ? otherwise : count(key);
}
double Config::real_or(std::string_view key, double otherwise) const {
  return automatic(key) ? otherwise : real(key);
}
bool Config::flag_or(std::string_view key, bool otherwise) const {
  return automatic(key) ? otherwise : flag(key);
}
std::string Config::text_or(std::string_view key, std::string_view otherwise) const {
  return automatic(key) ? std::string(otherwise) : text(key);
}

bool Config::given(std::string_view key) const {
  return origin(key).kind != Origin::Kind::standard;
}
const Origin& Config::origin(std::string_view key) const {
  return entry(key).origin;
}
const Value& Config::value(std::string_view key) const {
  return entry(key).value;
}

std::string Config::shown(std::string_view key) const {
  return value_text(key_of(key), entry(key).value);
}

std::string Config::cited(std::string_view key) const {
  const auto text = shown(key);
  return format("{} = {} ({})", key, text.empty() ? "''" : text, origin(key).text());
}

base::Result<Config> Config::with(std::string_view key, std::string_view text,
                                  const Origin& origin) const {
  auto value = parse_value(key_of(key), text);
  if (!value) {
    return base::usage_failure(format("{}: {}", origin.text(), value.failure().text));
  }
  Config changed = *this;
  changed.entries_[index_of(key)] = {*std::move(value), origin};
  return changed;
}

std::string Config::resolved_text(Origins origins) const {
  std::string text;
  for (const auto& section : sections()) {
    text += format("{}[{}]\n", text.empty() ? "" : "\n", section.name);
    for (const auto& key : schema()) {
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
  for (const auto& section : sections()) names.push_back(section.name);
  return fingerprint_of_sections(names);
}

std::uint64_t Config::fingerprint_of_sections(std::span<const std::string_view> names) const {
  base::Fnv1a hash;
  for (const auto& key : schema()) {
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
  for (const auto& key : schema()) {
    const auto name = key.full_name();
    if (first.value(name) == second.value(name)) continue;
    differences.push_back({name, first.shown(name), second.shown(name), first.origin(name),
                           second.origin(name), key.concern});
  }
  return differences;
}

std::filesystem::path run_directory(const Config& config) {
  if (!config.automatic("run.directory")) return config.text("run.directory");
  return std::filesystem::path("runs") / config.text("run.name");
}

}  // namespace trireme::config
