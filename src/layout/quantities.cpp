// SPDX-License-Identifier: Apache-2.0
#include "quantities.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include "mesh_choices.hpp"

#include <algorithm>
#include <array>
#include <iterator>

namespace trireme::layout {
namespace {

using base::format;
using Arrangement = ParallelArrangement;

constexpr AxisRow axis_table[] = {
    {Axis::tensor, "tp", {Quantity::tensor, "parallel.tensor", &Arrangement::tensor, "tensor"}},
    {Axis::context,
     "cp",
     {Quantity::context, "parallel.context", &Arrangement::context, "context"}},
    {Axis::pipeline,
     "pp",
     {Quantity::pipeline, "parallel.pipeline", &Arrangement::pipeline, "pipeline"}},
    {Axis::data, "dp", {Quantity::data, "parallel.data", &Arrangement::data, "data"}}};
static_assert(std::size(axis_table) == axis_count, "every axis has a row");

constexpr ArrangementKey other_keys[] = {
    {Quantity::sequence, "parallel.sequence", nullptr, "sequence"},
    {Quantity::schedule, "parallel.schedule", nullptr, "schedule"},
    {Quantity::virtual_stages, "parallel.virtual_stages", &Arrangement::virtual_stages,
     "virtual_stages"},
    {Quantity::stage_layers, "parallel.stage_layers", nullptr, "stage_layers"},
    {Quantity::layers, "model.num_hidden_layers", &Arrangement::layers, "layers"},
    {Quantity::heads, "model.num_attention_heads", &Arrangement::heads, "heads"},
    {Quantity::kv_heads, "model.num_key_value_heads", &Arrangement::kv_heads, "kv_heads"},
    {Quantity::vocabulary, "model.vocab_size", &Arrangement::vocabulary, "vocabulary"},
    {Quantity::intermediate, "model.intermediate_size", &Arrangement::intermediate, "intermediate"},
    {Quantity::micro_batch, "train.micro_batch", &Arrangement::micro_batch, "micro_batch"},
    {Quantity::global_batch, "train.global_batch", &Arrangement::global_batch, "global_batch"},
    {Quantity::sequence_length, "train.sequence_length", &Arrangement::sequence_length,
     "sequence_length"}};

/// Numbers that no key sets, with their names in place of one.
constexpr ArrangementKey without_key[] = {
    {Quantity::world_size, "world size", &Arrangement::world_size, "world_size"},
    {Quantity::micro_batches, "micro-batches", &Arrangement::micro_batches, "micro_batches"}};

constexpr auto quantity_table = [] {
  std::array<ArrangementKey, axis_count + std::size(other_keys) + std::size(without_key)> all{};
  auto* to = all.data();
  for (const auto& row : axis_table) *to++ = row.degree;
  to = std::copy(std::begin(other_keys), std::end(other_keys), to);
  std::copy(std::begin(without_key), std::end(without_key), to);
  return all;
}();

const ArrangementKey& row_of(Quantity quantity) {
  return *std::find_if(quantity_table.begin(), quantity_table.end(),
                       [&](const ArrangementKey& row) { return row.quantity == quantity; });
}

/// Quantity of a word in a sentence.
Quantity quantity_of(std::string_view word) {
  const auto* const found =
      std::find_if(quantity_table.begin(), quantity_table.end(),
                   [&](const ArrangementKey& row) { return row.word == word; });
  TRIREME_ENSURE(found != quantity_table.end(), format("'{}' is no quantity", word));
  return found->quantity;
}

}  // namespace

std::span<const AxisRow> axis_rows() {
  return axis_table;
}

const AxisRow& row_of(Axis axis) {
  return *std::find_if(std::begin(axis_table), std::end(axis_table),
                       [axis](const AxisRow& row) { return row.axis == axis; });
}

std::string_view word_of(Quantity quantity) {
  return row_of(quantity).word;
}

std::string_view key_of(Quantity quantity) {
  return row_of(quantity).key;
}

std::span<const ArrangementKey> arrangement_keys() {
  return std::span(quantity_table).first(axis_count + std::size(other_keys));
}

std::span<const ArrangementKey> degree_keys() {
  return std::span(quantity_table).first(axis_count);
}

std::int64_t known_ranks(const ParallelArrangement& arrangement) {
  std::int64_t ranks = 1;
  for (const auto& degree : degree_keys()) {
    ranks = saturated(ranks, (arrangement.*degree.number).value_or(1));
  }
  return ranks;
}

void complete_degrees(ParallelArrangement& arrangement) {
  for (const auto& degree : degree_keys()) {
    auto& number = arrangement.*degree.number;
    if (degree.quantity != Quantity::data) number = number.value_or(1);
  }
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
    return format("{} = {}", key, (arrangement.*row_of(quantity).number).value_or(1));
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
