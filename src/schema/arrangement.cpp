// SPDX-License-Identifier: Apache-2.0
#include "trireme/schema/arrangement.hpp"

namespace trireme::schema {

layout::ParallelArrangement arrangement(
    const std::function<std::optional<Value>(std::string_view key)>& value_of) {
  using layout::Quantity;
  layout::ParallelArrangement arrangement;
  for (const auto& key : layout::arrangement_keys()) {
    const auto value = value_of(key.key);
    if (!value || std::holds_alternative<Automatic>(*value)) continue;
    if (key.number != nullptr) arrangement.*key.number = std::get<std::int64_t>(*value);
    if (key.quantity == Quantity::sequence) arrangement.sequence = std::get<bool>(*value);
    if (key.quantity == Quantity::schedule) {
      arrangement.schedule = *layout::schedule_kind(std::get<std::string>(*value));
    }
    if (key.quantity == Quantity::stage_layers) {
      arrangement.stage_layers = std::get<std::vector<std::int64_t>>(*value);
    }
  }
  return arrangement;
}

}  // namespace trireme::schema
