#include "keys.hpp"

#include "trireme/base/format.hpp"
#include "trireme/config/schema.hpp"
#include "trireme/config/value.hpp"

namespace trireme::spank {
namespace {

/// The text of a refusal; empty when the configuration takes the value.
std::string refusal(std::string_view name, std::string_view value, const std::string& origin) {
  const auto* const key = config::find_key(name);
  if (key == nullptr) {
    return base::format("{}: there is no key '{}' (nothing would read it){}", origin, name,
                        config::key_suggestion(name));
  }
  const auto parsed = config::parse_value(*key, value);
  return parsed ? std::string() : base::format("{}: {}", origin, parsed.failure().text);
}

}  // namespace

std::vector<std::string> refused_by_configuration(const launch::Contract& contract) {
  std::vector<std::string> refused;
  for (const auto& given : contract.given()) {
    const std::string_view value = given.value;
    const auto equals = value.find('=');
    std::string text;
    if (given.term->is_setting) {
      text = refusal(value.substr(0, equals), value.substr(equals + 1), given.origin);
    } else if (!given.term->key.empty()) {
      text = refusal(given.term->key, value, given.origin);
    }
    if (!text.empty()) refused.push_back(std::move(text));
  }
  return refused;
}

}  // namespace trireme::spank
