// SPDX-License-Identifier: Apache-2.0
// The text of a contract in its variable.
#include "trireme/base/format.hpp"
#include "trireme/launch/contract.hpp"

#include "text.hpp"

#include <algorithm>

namespace trireme::launch {
namespace {

using base::format;

constexpr std::size_t longest_encoding = std::size_t{64} << 10;
constexpr std::size_t most_settings = 1000;

bool is_plain(char letter) {
  return is_lower_or_digit(letter) || (letter >= 'A' && letter <= 'Z') ||
         std::string_view("._-/:").find(letter) != std::string_view::npos;
}

/// Text with all characters but letters, digits and ._-/: as %XX.
std::string escaped(std::string_view text) {
  std::string safe;
  for (const char letter : text) {
    if (is_plain(letter)) {
      safe += letter;
    } else {
      safe += format("%{:02X}", static_cast<unsigned char>(letter));
    }
  }
  return safe;
}

std::optional<int> hex_digit(char letter) {
  if (is_digit(letter)) return letter - '0';
  if (letter >= 'A' && letter <= 'F') return letter - 'A' + 10;
  return std::nullopt;
}

std::optional<std::string> unescaped(std::string_view text) {
  std::string plain;
  for (std::size_t index = 0; index < text.size(); ++index) {
    if (text[index] != '%') {
      if (!is_plain(text[index])) return std::nullopt;
      plain += text[index];
      continue;
    }
    if (index + 2 >= text.size()) return std::nullopt;
    const auto high = hex_digit(text[index + 1]);
    const auto low = hex_digit(text[index + 2]);
    if (!high || !low) return std::nullopt;
    const auto letter = static_cast<char>(*high * 16 + *low);
    // Canonical form only: one encoded text for one value.
    if (is_plain(letter)) return std::nullopt;
    plain += letter;
    index += 2;
  }
  return plain;
}

base::Failure broken(std::string_view why, std::string_view part) {
  return {base::ExitCode::launch,
          format("{} {}: {} (the submitting side wrote another contract than this one reads, or "
                 "something changed it); unset {}, or submit again",
                 encoded_variable, why, shown(part), encoded_variable)};
}

base::Result<Setting> decode_setting(std::string_view field) {
  const auto equals = field.find('=');
  const auto at = field.find('@');
  if (equals == std::string_view::npos || at == std::string_view::npos || at < equals) {
    return broken("has a part that is not option=value@origin", field);
  }
  const auto* option = find_option(field.substr(0, equals));
  if (option == nullptr) return broken("has an unknown option", field);
  const auto text = unescaped(field.substr(equals + 1, at - equals - 1));
  const auto origin = unescaped(field.substr(at + 1));
  if (!text || !origin || origin->empty() ||
      std::any_of(origin->begin(), origin->end(), is_control)) {
    return broken("has a part that is not escaped as it should be", field);
  }
  auto value = parse_value(*option, *text, *origin);
  if (!value) return base::Failure{base::ExitCode::launch, value.failure().text};
  if (*value != *text) return broken("has a value that is not canonical", field);
  return Setting{option, *std::move(value), *origin};
}

}  // namespace

std::string encode(const Contract& contract) {
  auto text = format("{}", contract_version);
  for (const auto& setting : contract.settings()) {
    text +=
        format(";{}={}@{}", setting.option->name, escaped(setting.value), escaped(setting.origin));
  }
  return text;
}

base::Result<Contract> decode(std::string_view encoded) {
  if (encoded.size() > longest_encoding) {
    return broken(format("has more than {} bytes", longest_encoding), encoded);
  }
  const auto fields = split(encoded, ';');
  const auto version = fields.empty() ? std::nullopt : parse_number(fields.front());
  if (!version || *version < 1) return broken("does not begin with a version", encoded);
  if (*version > contract_version) {
    return base::Failure{
        base::ExitCode::launch,
        format("{} is version {} of the launch contract, and this trireme reads up to version {} "
               "(its plugin on the submitting side is newer); install the same version on all "
               "nodes, or unset {}",
               encoded_variable, *version, contract_version, encoded_variable)};
  }
  if (fields.size() > most_settings) {
    return broken(format("has more than {} settings", most_settings), encoded);
  }
  Contract contract;
  for (std::size_t index = 1; index < fields.size(); ++index) {
    auto setting = decode_setting(fields[index]);
    if (!setting) return setting.failure();
    if (!setting->option->sets_any_key && contract.find(setting->option->name) != nullptr) {
      return broken("says an option twice", fields[index]);
    }
    contract.put(*std::move(setting));
  }
  return contract;
}

}  // namespace trireme::launch
