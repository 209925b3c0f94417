// SPDX-License-Identifier: Apache-2.0
#include "trireme/launch/contract.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::launch {

using base::format;

const Setting* Contract::find(std::string_view option) const {
  const auto found = std::find_if(settings_.begin(), settings_.end(), [&](const Setting& setting) {
    return setting.option->name == option;
  });
  return found == settings_.end() ? nullptr : &*found;
}

std::optional<int> Contract::number(std::string_view option) const {
  const auto* setting = find(option);
  if (setting == nullptr || !setting->option->is_number()) return std::nullopt;
  const bool word = std::find(setting->option->words.begin(), setting->option->words.end(),
                              setting->value) != setting->option->words.end();
  if (word) return std::nullopt;
  return std::stoi(setting->value);
}

void Contract::put(Setting setting) {
  if (!setting.option->sets_any_key) drop(setting.option->name);
  // Sorted as the table is, so that equal contracts are equal texts.
  const auto place = std::upper_bound(
      settings_.begin(), settings_.end(), setting.option,
      [](const Option* option, const Setting& other) { return option < other.option; });
  settings_.insert(place, std::move(setting));
}

void Contract::drop(std::string_view option) {
  std::erase_if(settings_, [&](const Setting& setting) { return setting.option->name == option; });
}

void Contract::put_all(const Contract& other) {
  for (const auto& setting : other.settings_) put(setting);
}

bool Contract::off() const {
  const auto* launch = find("trireme");
  return launch != nullptr && launch->value == "off";
}

bool Contract::active() const {
  return !settings_.empty() && !off();
}

std::map<std::string, std::string, std::less<>> variables(const Contract& contract) {
  std::map<std::string, std::string, std::less<>> all;
  for (const auto& setting : contract.settings()) {
    if (contract.off() && setting.option->name != "trireme") continue;
    auto& value = all[std::string(setting.option->variable)];
    value += (value.empty() ? "" : "\n") + setting.value;
  }
  return all;
}

namespace {

/// Contract of one variable; empty for a TRIREME_SET without a line.
base::Result<Contract> read_variable(const Option& option, const std::string& text) {
  Contract contract;
  const std::string origin(option.variable);
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = option.sets_any_key ? rest.find('\n') : std::string_view::npos;
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty()) continue;
    auto value = parse_value(option, line, origin);
    if (!value) return value.failure();
    contract.put({&option, *std::move(value), origin});
  }
  return contract;
}

}  // namespace

base::Result<Contract> read_contract(const base::Environment& environment, Inherit inherit) {
  Contract encoded;
  if (const auto text = environment.get(encoded_variable)) {
    auto decoded = decode(*text);
    if (!decoded) return decoded.failure();
    encoded = *std::move(decoded);
  }
  const auto inherited = variables(encoded);
  Contract contract = inherit == Inherit::yes ? encoded : Contract{};
  for (const auto& option : options()) {
    const auto text = environment.get(option.variable);
    if (!text || text->empty()) continue;
    const auto same = inherited.find(option.variable);
    if (same != inherited.end() && same->second == *text) continue;
    auto by_hand = read_variable(option, *text);
    if (!by_hand) return by_hand.failure();
    // A list exported by hand replaces the whole list.
    if (option.sets_any_key) contract.drop(option.name);
    contract.put_all(*by_hand);
  }
  return contract;
}

bool plugin_is_absent_here(const base::Environment& environment) {
  const auto encoded = environment.get(encoded_variable);
  const auto node = environment.get("SLURMD_NODENAME");
  if (!encoded || !node) return false;
  const auto contract = decode(*encoded);
  if (contract.ok() && !contract->active()) return false;
  return environment.get(node_variable) != node;
}

}  // namespace trireme::launch
