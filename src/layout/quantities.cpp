// SPDX-License-Identifier: Apache-2.0
#include "quantities.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <array>

namespace trireme::layout {
namespace {

using base::format;
using Arrangement = ParallelArrangement;

struct Name {
  Quantity quantity;
  /// Word in sentences of violations.
  std::string_view word;
};

constexpr std::array<Name, 17> names{{{Quantity::world_size, "world_size"},
                                      {Quantity::tensor, "tensor"},
                                      {Quantity::pipeline, "pipeline"},
                                      {Quantity::data, "data"},
                                      {Quantity::sequence, "sequence"},
                                      {Quantity::schedule, "schedule"},
                                      {Quantity::virtual_stages, "virtual_stages"},
                                      {Quantity::stage_layers, "stage_layers"},
                                      {Quantity::layers, "layers"},
                                      {Quantity::heads, "heads"},
                                      {Quantity::kv_heads, "kv_heads"},
                                      {Quantity::vocabulary, "vocabulary"},
                                      {Quantity::intermediate, "intermediate"},
                                      {Quantity::micro_batch, "micro_batch"},
                                      {Quantity::global_batch, "global_batch"},
                                      {Quantity::sequence_length, "sequence_length"},
                                      {Quantity::micro_batches, "micro_batches"}}};

constexpr std::array<ArrangementKey, 15> keys{
    {{Quantity::tensor, "parallel.tensor", &Arrangement::tensor},
     {Quantity::pipeline, "parallel.pipeline", &Arrangement::pipeline},
     {Quantity::data, "parallel.data", &Arrangement::data},
     {Quantity::sequence, "parallel.sequence", nullptr},
     {Quantity::schedule, "parallel.schedule", nullptr},
     {Quantity::virtual_stages, "parallel.virtual_stages", &Arrangement::virtual_stages},
     {Quantity::stage_layers, "parallel.stage_layers", nullptr},
     {Quantity::layers, "model.num_hidden_layers", &Arrangement::layers},
     {Quantity::heads, "model.num_attention_heads", &Arrangement::heads},
     {Quantity::kv_heads, "model.num_key_value_heads", &Arrangement::kv_heads},
     {Quantity::vocabulary, "model.vocab_size", &Arrangement::vocabulary},
     {Quantity::intermediate, "model.intermediate_size", &Arrangement::intermediate},
     {Quantity::micro_batch, "train.micro_batch", &Arrangement::micro_batch},
     {Quantity::global_batch, "train.global_batch", &Arrangement::global_batch},
     {Quantity::sequence_length, "train.sequence_length", &Arrangement::sequence_length}}};

/// Quantity of a word in a sentence.
Quantity quantity_of(std::string_view word) {
  const auto* const found =
      std::find_if(names.begin(), names.end(), [&](const Name& name) { return name.word == word; });
  TRIREME_ENSURE(found != names.end(), format("'{}' is no quantity", word));
  return found->quantity;
}

}  // namespace

std::string_view word_of(Quantity quantity) {
  return std::find_if(names.begin(), names.end(),
                      [&](const Name& name) { return name.quantity == quantity; })
      ->word;
}

std::span<const ArrangementKey> arrangement_keys() {
  return keys;
}

std::string_view key_of(Quantity quantity) {
  for (const auto& key : arrangement_keys()) {
    if (key.quantity == quantity) return key.key;
  }
  return quantity == Quantity::world_size ? "world size" : "micro-batches";
}

std::string text(const Violation& violation, const Citation& cited,
                 const std::function<std::string(Quantity)>& named) {
  std::string result;
  std::string_view rest = violation.sentence;
  while (true) {
    const auto begin = rest.find_first_of("<[");
    result += rest.substr(0, begin);
    if (begin == std::string_view::npos) return result;
    const auto end = rest.find_first_of(">]", begin);
    const auto quantity = quantity_of(rest.substr(begin + 1, end - begin - 1));
    if (rest[begin] == '<') {
      result += cited(quantity);
    } else {
      result += named ? named(quantity) : std::string(key_of(quantity));
    }
    rest.remove_prefix(end + 1);
  }
}

Citation citation(const ParallelArrangement& arrangement) {
  return [arrangement](Quantity quantity) -> std::string {
    const auto key = key_of(quantity);
    if (quantity == Quantity::world_size) {
      return format("world size {}", arrangement.world_size.value_or(0));
    }
    if (quantity == Quantity::micro_batches) {
      return format("{} micro-batches", arrangement.micro_batches.value_or(0));
    }
    if (quantity == Quantity::sequence) {
      return format("{} = {}", key, arrangement.sequence.value_or(false));
    }
    if (quantity == Quantity::schedule) {
      const auto kind = arrangement.schedule.value_or(ScheduleKind::one_forward_one_backward);
      return format("{} = {}", key, name(kind));
    }
    if (quantity == Quantity::stage_layers) {
      const auto list = arrangement.stage_layers.value_or(std::vector<std::int64_t>{});
      return format("{} = {}", key, base::join(list, ", "));
    }
    for (const auto& row : arrangement_keys()) {
      if (row.quantity == quantity) {
        return format("{} = {}", key, (arrangement.*row.number).value_or(1));
      }
    }
    return std::string(key);
  };
}

base::Status check(const ParallelArrangement& arrangement) {
  const auto found = violations(arrangement);
  if (found.empty()) return {};
  const auto& first = found.front();
  const bool of_launch = first.rule == ParallelRule::world_not_filled;
  return base::Failure{of_launch ? base::ExitCode::launch : base::ExitCode::usage,
                       text(first, citation(arrangement))};
}

}  // namespace trireme::layout
