// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/recompute.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/number.hpp"

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace trireme::config {
namespace {

using base::format;

/// Words of the kinds in their order, then those of former versions.
constexpr std::pair<std::string_view, Activation> words[] = {
    {"norms", Activation::norms},         {"activation", Activation::activation},
    {"attention", Activation::attention}, {"mlp", Activation::mlp},
    {"layer", Activation::layer},         {"selective", Activation::attention},
    {"full", Activation::layer}};

std::optional<Activation> kind_of(std::string_view word) {
  for (const auto& [name, kind] : words) {
    if (name == word) return kind;
  }
  return std::nullopt;
}

std::optional<int> count_of(std::string_view digits) {
  const auto count = base::number_in<int>(digits);
  return count && *count >= 1 ? count : std::nullopt;
}

}  // namespace

std::string Recompute::text() const {
  std::vector<std::string> entries;
  for (std::size_t kind = 0; kind < activation_count; ++kind) {
    if (layers_[kind] == 0) continue;
    entries.push_back(layers_[kind] == all_layers
                          ? std::string(words[kind].first)
                          : format("{}:{}", words[kind].first, layers_[kind]));
  }
  return entries.empty() ? "none" : format("{}", base::join(entries, ","));
}

base::Result<Recompute> parse_recompute(std::span<const std::string> entries) {
  Recompute recompute;
  for (const auto& entry : entries) {
    const auto colon = entry.find(':');
    const auto word = std::string_view(entry).substr(0, colon);
    if (word == "none") {
      if (entries.size() == 1 && colon == std::string::npos) return recompute;
      return base::usage_failure("says none beside something else; write none alone");
    }
    const auto kind = kind_of(word);
    if (!kind) {
      return base::usage_failure(
          format("has the entry '{}', which is no kind of activation; use norms, activation, "
                 "attention, mlp and layer, or none",
                 entry));
    }
    const auto layers = colon == std::string::npos
                            ? std::optional(Recompute::all_layers)
                            : count_of(std::string_view(entry).substr(colon + 1));
    if (!layers) {
      return base::usage_failure(
          format("has the entry '{}' (behind ':' stands a number of layers, 1 or more); write "
                 "{}:8, or {} for all layers",
                 entry, word, word));
    }
    recompute.add(*kind, *layers);
  }
  return recompute;
}

}  // namespace trireme::config
