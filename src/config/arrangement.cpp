// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/arrangement.hpp"

#include "trireme/schema/arrangement.hpp"

namespace trireme::config {

layout::ParallelArrangement arrangement(const Options& options) {
  return schema::arrangement([&options](std::string_view key) -> std::optional<schema::Value> {
    const auto* const row = schema::find_key(key);
    return row == nullptr ? std::nullopt : std::optional(row->load(options));
  });
}

layout::ParallelArrangement arrangement(const Config& config) {
  return schema::arrangement([&config](std::string_view key) -> std::optional<schema::Value> {
    return schema::find_key(key) == nullptr ? std::nullopt : std::optional(config.value(key));
  });
}

std::int64_t least_world(const Config& config) {
  return layout::known_ranks(arrangement(config.options()));
}

layout::Citation citation(const Config& config, const layout::ParallelArrangement& arrangement) {
  return [&config, plain = layout::citation(arrangement)](layout::Quantity quantity) {
    const auto key = layout::key_of(quantity);
    const bool is_key = schema::find_key(key) != nullptr;
    return is_key && !config.automatic(key) ? config.cited(key) : plain(quantity);
  };
}

}  // namespace trireme::config
