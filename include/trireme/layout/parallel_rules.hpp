// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/schedule.hpp"

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// Rules of a parallel arrangement. This is their only statement: the Slurm plugin, the
/// configuration, the engine and the plan call violations() and add only their own wording.
namespace trireme::layout {

/// Quantities that the rules refer to.
enum class Quantity {
  world_size,
  tensor,
  context,
  pipeline,
  data,
  sequence,
  schedule,
  virtual_stages,
  stage_layers,
  layers,
  heads,
  kv_heads,
  vocabulary,
  intermediate,
  micro_batch,
  global_batch,
  sequence_length,
  micro_batches,
};

/// Numbers of an arrangement, as far as they are known. Unknown ones violate no rule.
struct ParallelArrangement {
  using Number = std::optional<std::int64_t>;

  /// Ranks that start.
  Number world_size = {};
  /// Degrees.
  Number tensor = {};
  /// 1 where nobody says how many.
  Number context = {};
  Number pipeline = {};
  Number data = {};
  /// Sequence parallelism: activations between GEMMs are divided over tensor-parallel ranks.
  std::optional<bool> sequence = {};
  std::optional<ScheduleKind> schedule = {};
  Number virtual_stages = {};
  /// Layers of each position of the model, in the model's order; empty: each gets some.
  std::optional<std::vector<std::int64_t>> stage_layers = {};

  /// Sizes of the model.
  Number layers = {};
  Number heads = {};
  Number kv_heads = {};
  Number vocabulary = {};
  Number intermediate = {};

  /// Sequences of one forward, and of one step over all ranks.
  Number micro_batch = {};
  Number global_batch = {};
  /// Tokens of a sequence.
  Number sequence_length = {};
  /// Micro-batches of one replica in a step, where given explicitly; else derived from the batches.
  Number micro_batches = {};
};

/// A number of an arrangement that a key of the configuration sets.
struct ArrangementKey {
  Quantity quantity;
  std::string_view key;
  /// Null for what is no such number: `sequence`, `schedule`, `stage_layers`.
  ParallelArrangement::Number ParallelArrangement::*number;
  /// In sentences of violations.
  std::string_view word;
};
std::span<const ArrangementKey> arrangement_keys();
/// Those of the degrees of a mesh, in the order in which messages name them.
std::span<const ArrangementKey> degree_keys();

/// Ranks that the known degrees make; the largest number where they are more.
std::int64_t known_ranks(const ParallelArrangement& arrangement);
/// Sets degrees that are not given to 1, except that of data parallelism, which takes what the
/// others leave.
void complete_degrees(ParallelArrangement& arrangement);

/// "parallel.tensor", "model.num_attention_heads"; "world size" and "micro-batches" have no key.
std::string_view key_of(Quantity quantity);

enum class ParallelRule {
  degree_below_one,      ///< every number is at least 1
  world_not_filled,      ///< the product of the degrees is the world size
  heads_not_divided,     ///< tensor | heads
  kv_heads_not_divided,  ///< tensor | kv_heads, or kv_heads | tensor
  rows_too_few,          ///< tensor <= vocabulary, intermediate
  chunks_not_divided,    ///< 2 x context | sequence_length
  rows_not_divided,      ///< tensor | micro_batch x sequence_length / context (sequence)
  virtual_without_interleaved,
  interleaved_without_virtual,
  interleaved_on_one_stage,  ///< zb-v, too
  v_without_two_chunks,
  too_many_positions,  ///< pipeline x virtual_stages <= layers
  stage_layers_count,
  stage_layers_empty,  ///< only the first and the last position may be empty
  stage_layers_sum,
  batch_not_divided,  ///< micro_batch x data | global_batch
  rounds_not_filled,  ///< pipeline | micro-batches of a replica (interleaved)
  too_many_actions,
};

struct Violation {
  ParallelRule rule;
  /// Quantities that violate it, in the order of the sentence.
  std::vector<Quantity> quantities;
  /// Sentence "<tensor> does not divide <heads> (each rank holds whole heads); try 1, 2, 4", in
  /// which <name> is replaced by a quantity with its value and [name] by its origin.
  std::string sentence;
};

/// Violated rules of the arrangement. Pure, and without overflow for any numbers.
std::vector<Violation> violations(const ParallelArrangement& arrangement);

/// A quantity with its value, as its surface writes it: "parallel.tensor = 3 (a.conf:4)".
using Citation = std::function<std::string(Quantity)>;

/// The sentence of a violation. Without `names`, quantities are called by their keys.
std::string text(const Violation& violation, const Citation& cited,
                 const std::function<std::string(Quantity)>& named = {});

/// Citation "parallel.tensor = 3" of quantities whose origin is not known.
Citation citation(const ParallelArrangement& arrangement);

/// The failure (ExitCode::usage, or ExitCode::launch where ranks do not fit degrees) of the first
/// violation, cited by citation().
base::Status check(const ParallelArrangement& arrangement);

}  // namespace trireme::layout
