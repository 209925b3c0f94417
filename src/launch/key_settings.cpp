// SPDX-License-Identifier: Apache-2.0
#include "key_settings.hpp"

namespace trireme::launch {

const Setting* last_of_any_key(const Contract& contract, std::string_view key) {
  const Setting* last = nullptr;
  for (const auto& setting : contract.settings()) {
    const std::string_view value = setting.value;
    if (setting.option->sets_any_key && value.substr(0, value.find('=')) == key) last = &setting;
  }
  return last;
}

const Setting* setting_of(const Contract& contract, std::string_view key) {
  for (const auto& setting : contract.settings()) {
    if (setting.option->key == key) return &setting;
  }
  return last_of_any_key(contract, key);
}

std::string value_of(const Setting* setting) {
  if (setting == nullptr) return {};
  return setting->option->sets_any_key ? setting->value.substr(setting->value.find('=') + 1)
                                       : setting->value;
}

}  // namespace trireme::launch
