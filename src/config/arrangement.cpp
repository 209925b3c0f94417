// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/arrangement.hpp"

namespace trireme::config {

layout::ParallelArrangement arrangement(const Options& options) {
  const auto& model = options.model;
  const auto& parallel = options.parallel;
  const auto& train = options.train;
  return {.tensor = parallel.tensor,
          .pipeline = parallel.pipeline,
          .data = parallel.data,
          .sequence = parallel.sequence,
          .schedule = parallel.schedule,
          .virtual_stages = parallel.virtual_stages,
          .stage_layers = parallel.stage_layers,
          .layers = model.num_hidden_layers,
          .heads = model.num_attention_heads,
          .kv_heads = model.num_key_value_heads,
          .vocabulary = model.vocab_size,
          .intermediate = model.intermediate_size,
          .micro_batch = train.micro_batch,
          .global_batch = train.global_batch,
          .sequence_length = train.sequence_length};
}

std::int64_t least_world(const ParallelOptions& parallel) {
  constexpr auto most = std::int64_t{1} << 62;
  const auto of_replica = std::int64_t{parallel.tensor} * parallel.pipeline;
  const auto replicas = parallel.data.value_or(1);
  return of_replica > most / replicas ? most : of_replica * replicas;
}

layout::Citation citation(const Config& config, const layout::ParallelArrangement& arrangement) {
  return [&config, plain = layout::citation(arrangement)](layout::Quantity quantity) {
    const auto key = layout::key_of(quantity);
    const bool is_key = schema::find_key(key) != nullptr;
    return is_key && !config.automatic(key) ? config.cited(key) : plain(quantity);
  };
}

}  // namespace trireme::config
