// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/schema/choices.hpp"
#include "trireme/schema/value.hpp"

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

/// The values of a configuration, typed: one struct a section, one member a key, named as the key.
/// What may be `auto` is optional. The key's row (src/schema/keys_SECTION.cpp) has its default,
/// range, unit and documentation.
namespace trireme::schema {

struct RopeScalingOptions {
  std::optional<RopeType> rope_type;
  std::optional<double> factor;
  std::optional<double> low_freq_factor;
  std::optional<double> high_freq_factor;
  std::optional<std::int64_t> original_max_position_embeddings;

  bool operator==(const RopeScalingOptions&) const = default;
};

struct ModelOptions {
  std::optional<Architecture> architecture;
  std::string from;
  std::optional<std::int64_t> vocab_size;
  std::optional<std::int64_t> hidden_size;
  std::optional<std::int64_t> intermediate_size;
  std::optional<int> num_hidden_layers;
  std::optional<int> num_attention_heads;
  std::optional<int> num_key_value_heads;
  std::optional<std::int64_t> head_dim;
  std::optional<std::int64_t> max_position_embeddings;
  std::optional<double> rope_theta;
  RopeScalingOptions rope_scaling;
  std::optional<double> rms_norm_eps;
  std::optional<double> layer_norm_eps;
  std::optional<bool> tie_word_embeddings;
  std::optional<double> dropout;
  std::optional<double> initializer_range;

  bool operator==(const ModelOptions&) const = default;
};

struct ParallelOptions {
  int tensor = 1;
  int context = 1;
  int pipeline = 1;
  std::optional<int> data;
  bool sequence = false;
  layout::ScheduleKind schedule = layout::ScheduleKind::one_forward_one_backward;
  int virtual_stages = 1;
  std::vector<std::int64_t> stage_layers;
  int zero_level = 0;
  std::int64_t bucket_bytes = 0;

  bool operator==(const ParallelOptions&) const = default;
};

struct TrainOptions {
  std::int64_t steps = 0;
  std::int64_t sequence_length = 0;
  bool document_mask = false;
  std::int64_t micro_batch = 0;
  std::optional<std::int64_t> global_batch;
  std::int64_t seed = 0;
  /// Entries of a config::Recompute; unset: chosen within memory_limit.
  std::optional<std::vector<std::string>> activation_checkpointing;
  std::int64_t memory_limit = 0;
  std::int64_t log_every = 0;
  /// Seconds.
  double log_interval = 0;
  /// Text of a StepRange; empty: no steps.
  std::string profile;
  std::int64_t eval_every = 0;
  std::int64_t eval_batches = 0;
  std::string sample_prompts;
  std::int64_t sample_tokens = 0;
  double sample_temperature = 0;
  std::int64_t replica_check = 0;

  bool operator==(const TrainOptions&) const = default;
};

struct OptimizerOptions {
  UpdateRule name = UpdateRule::adamw;
  double learning_rate = 0;
  double min_learning_rate = 0;
  LearningRateCurve curve = LearningRateCurve::cosine;
  std::int64_t warmup_steps = 0;
  std::optional<std::int64_t> decay_steps;
  double beta1 = 0;
  double beta2 = 0;
  double eps = 0;
  /// Unset: default_momentum(name).
  std::optional<double> momentum;
  bool nesterov = true;
  std::int64_t ns_steps = 0;
  NewtonSchulzCoefficients ns_coefficients = NewtonSchulzCoefficients::simple;
  MatrixScale scale = MatrixScale::match_rms_adamw;
  std::int64_t root_every = 0;
  double epsilon = 0;
  /// Unset: default_max_side(name).
  std::optional<std::int64_t> max_side;
  /// Unset: learning_rate.
  std::optional<double> adamw_learning_rate;
  /// Name patterns.
  std::vector<std::string> adamw_matrices;
  bool per_head = false;
  /// None: the one that a run's plan costs least with.
  std::optional<layout::Assignment> assignment;
  std::int64_t group_bytes = 0;
  double weight_decay = 0;
  double clip_norm = 0;
  std::int64_t skip_nonfinite = 0;

  bool operator==(const OptimizerOptions&) const = default;
};

struct OffloadOptions {
  OffloadTo optimizer = OffloadTo::none;
  std::int64_t chunk_bytes = 0;

  bool operator==(const OffloadOptions&) const = default;
};

struct NumericsOptions {
  Precision precision = Precision::fp32;
  KernelBackend backend = KernelBackend::automatic;
  AttentionKernels attention = AttentionKernels::automatic;
  bool deterministic = false;
  bool stochastic_rounding = false;
  bool cuda_graphs = false;
  std::optional<int> threads;
  std::optional<double> peak_flops;

  bool on_gpus() const { return backend == KernelBackend::cuda; }

  bool operator==(const NumericsOptions&) const = default;
};

struct DataOptions {
  std::vector<schema::WeightedText> train;
  std::vector<schema::WeightedText> validation;
  std::string tokenizer;
  bool shuffle = true;
  std::optional<std::int64_t> seed;

  bool operator==(const DataOptions&) const = default;
};

struct CheckpointOptions {
  bool asynchronous = false;
  int failures_allowed = 0;
  std::int64_t every_steps = 0;
  double every_minutes = 0;
  std::string directory;
  std::string key_file;
  int keep_best = 0;
  std::int64_t keep_every = 0;
  int keep_last = 0;
  std::optional<std::string> load;
  std::string local_directory;
  std::int64_t local_every_steps = 0;
  int replicas = 0;

  /// Threads write checkpoints while the run trains on (train::AsyncSaves).
  bool beside_training() const {
    return asynchronous && (every_steps > 0 || every_minutes > 0 || !local_directory.empty());
  }
  bool operator==(const CheckpointOptions&) const = default;
};

struct CommOptions {
  /// Seconds.
  double timeout = 0;
  double start_timeout = 0;
  CommBackend backend = CommBackend::automatic;
  RdmaRule require_rdma = RdmaRule::automatic;
  RegisterBuffers register_buffers = RegisterBuffers::buffers;

  bool operator==(const CommOptions&) const = default;
};

struct RunOptions {
  std::optional<std::string> directory;
  std::string name;
  std::vector<std::string> tags;
  BindingRule binding = BindingRule::automatic;
  OrderRule order = OrderRule::automatic;
  /// Seconds.
  double job_comment = 0;
  std::optional<double> signal_lead;

  bool operator==(const RunOptions&) const = default;
};

struct TrackOptions {
  /// Targets, as they are written.
  std::vector<std::string> to;
  /// Seconds.
  double interval = 0;
  TraceRanks trace_ranks = TraceRanks::sampled;
  /// 0: none.
  int prometheus_port = 0;
  /// Unset: that of the host's name.
  std::optional<std::string> prometheus_interface;

  bool operator==(const TrackOptions&) const = default;
};

struct PlanOptions {
  std::string machine;

  bool operator==(const PlanOptions&) const = default;
};

struct Options {
  ModelOptions model;
  ParallelOptions parallel;
  TrainOptions train;
  OptimizerOptions optimizer;
  OffloadOptions offload;
  NumericsOptions numerics;
  DataOptions data;
  CheckpointOptions checkpoint;
  CommOptions comm;
  RunOptions run;
  TrackOptions track;
  PlanOptions plan;

  /// Steps over which the learning rate falls at the end; a tenth of the run (rounded up) where
  /// the key is auto: what the paper of wsd found enough.
  std::int64_t decay_steps() const {
    return optimizer.decay_steps.value_or((train.steps + 9) / 10);
  }
  std::int64_t data_seed() const { return data.seed.value_or(train.seed); }

  bool operator==(const Options&) const = default;
};

}  // namespace trireme::schema
