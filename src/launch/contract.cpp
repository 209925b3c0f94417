#include "trireme/launch/contract.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::launch {

using base::format;

const Given* Contract::find(std::string_view option) const {
  const auto found = std::find_if(given_.begin(), given_.end(),
                                  [&](const Given& given) { return given.term->option == option; });
  return found == given_.end() ? nullptr : &*found;
}

std::optional<int> Contract::number(std::string_view option) const {
  const auto* given = find(option);
  if (given == nullptr || !given->term->is_number()) return std::nullopt;
  const bool word = std::find(given->term->words.begin(), given->term->words.end(), given->value) !=
                    given->term->words.end();
  if (word) return std::nullopt;
  return std::stoi(given->value);
}

void Contract::put(Given given) {
  if (!given.term->is_setting) drop(given.term->option);
  // In the order of the table, so that equal contracts are equal texts.
  const auto place =
      std::upper_bound(given_.begin(), given_.end(), given.term,
                       [](const Term* term, const Given& other) { return term < other.term; });
  given_.insert(place, std::move(given));
}

void Contract::drop(std::string_view option) {
  std::erase_if(given_, [&](const Given& given) { return given.term->option == option; });
}

void Contract::put_all(const Contract& other) {
  for (const auto& given : other.given_) put(given);
}

bool Contract::off() const {
  const auto* launch = find("trireme");
  return launch != nullptr && launch->value == "off";
}

bool Contract::active() const {
  return !given_.empty() && !off();
}

std::map<std::string, std::string, std::less<>> variables(const Contract& contract) {
  std::map<std::string, std::string, std::less<>> all;
  for (const auto& given : contract.given()) {
    if (contract.off() && given.term->option != "trireme") continue;
    auto& value = all[std::string(given.term->variable)];
    value += (value.empty() ? "" : "\n") + given.value;
  }
  return all;
}

namespace {

/// What one variable says by itself; nothing for a TRIREME_SET without a line.
base::Result<Contract> read_variable(const Term& term, const std::string& text) {
  Contract contract;
  const std::string origin(term.variable);
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = term.is_setting ? rest.find('\n') : std::string_view::npos;
    const auto line = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (line.empty()) continue;
    auto value = parse_value(term, line, origin);
    if (!value) return value.failure();
    contract.put({&term, *std::move(value), origin});
  }
  return contract;
}

}  // namespace

base::Result<Contract> read_contract(const base::Environment& environment, Inherit inherit) {
  Contract carried;
  if (const auto text = environment.get(carrier_variable)) {
    auto decoded = decode(*text);
    if (!decoded) return decoded.failure();
    carried = *std::move(decoded);
  }
  const auto inherited = variables(carried);
  Contract contract = inherit == Inherit::yes ? carried : Contract{};
  for (const auto& term : terms()) {
    const auto text = environment.get(term.variable);
    if (!text || text->empty()) continue;
    const auto same = inherited.find(term.variable);
    if (same != inherited.end() && same->second == *text) continue;
    auto by_hand = read_variable(term, *text);
    if (!by_hand) return by_hand.failure();
    // A list by hand is the whole list.
    if (term.is_setting) contract.drop(term.option);
    contract.put_all(*by_hand);
  }
  return contract;
}

bool plugin_is_absent_here(const base::Environment& environment) {
  const auto carrier = environment.get(carrier_variable);
  const auto node = environment.get("SLURMD_NODENAME");
  if (!carrier || !node) return false;
  const auto contract = decode(*carrier);
  if (contract.ok() && !contract->active()) return false;
  return environment.get(node_variable) != node;
}

}  // namespace trireme::launch
