// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/options.hpp"

#include "trireme/base/format.hpp"
#include "trireme/config/config.hpp"

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <string_view>
#include <type_traits>
#include <utility>

namespace trireme::config {
namespace {

using base::format;

/// Enumerators of a key's choices.
template <typename Enum>
using Meanings = std::initializer_list<std::pair<std::string_view, Enum>>;

/// Reads keys of one section into members of their types.
class Section {
 public:
  Section(const Config& config, std::string_view name) : config_(config), name_(name) {}

  template <typename T>
  void read(std::string_view key, T& member) const {
    member = held<T>(key);
  }
  void read(std::string_view key, int& member) const {
    const auto number = held<std::int64_t>(key);
    TRIREME_EXPECT(number >= 0 && number <= std::numeric_limits<int>::max(),
                   format("'{}.{}' = {} is no int", name_, key, number));
    member = static_cast<int>(number);
  }
  template <typename T>
  void read(std::string_view key, std::optional<T>& member) const {
    member.reset();
    if (!config_.automatic(full(key))) read(key, member.emplace());
  }
  template <typename Enum>
  requires std::is_enum_v<Enum>
  void read(std::string_view key, Enum& member, Meanings<Enum> meanings) const {
    const auto& choices = schema::find_key(full(key))->choices;
    TRIREME_EXPECT(
        std::equal(choices.begin(), choices.end(), meanings.begin(), meanings.end(),
                   [](const auto& choice, const auto& meaning) { return choice == meaning.first; }),
        format("each choice of '{}.{}' has a meaning", name_, key));
    const auto& text = held<std::string>(key);
    member = std::find_if(meanings.begin(), meanings.end(), [&](const auto& meaning) {
               return meaning.first == text;
             })->second;
  }
  template <typename Enum>
  void read(std::string_view key, std::optional<Enum>& member, Meanings<Enum> meanings) const {
    member.reset();
    if (!config_.automatic(full(key))) read(key, member.emplace(), meanings);
  }

 private:
  std::string full(std::string_view key) const { return format("{}.{}", name_, key); }
  template <typename T>
  const T& held(std::string_view key) const {
    const auto* const value = std::get_if<T>(&config_.value(full(key)));
    TRIREME_EXPECT(value != nullptr, format("'{}.{}' has this type", name_, key));
    return *value;
  }

  const Config& config_;
  std::string_view name_;
};

RopeScalingOptions rope_scaling(const Section& section) {
  RopeScalingOptions rope;
  section.read(
      "rope_scaling.rope_type", rope.rope_type,
      {{"default", RopeType::none}, {"linear", RopeType::linear}, {"llama3", RopeType::llama3}});
  section.read("rope_scaling.factor", rope.factor);
  section.read("rope_scaling.low_freq_factor", rope.low_freq_factor);
  section.read("rope_scaling.high_freq_factor", rope.high_freq_factor);
  section.read("rope_scaling.original_max_position_embeddings",
               rope.original_max_position_embeddings);
  return rope;
}

ModelOptions model_options(const Section& section) {
  ModelOptions model;
  section.read("architecture", model.architecture,
               {{"gpt2", Architecture::gpt2},
                {"llama", Architecture::llama},
                {"qwen3", Architecture::qwen3}});
  section.read("from", model.from);
  section.read("vocab_size", model.vocab_size);
  section.read("hidden_size", model.hidden_size);
  section.read("intermediate_size", model.intermediate_size);
  section.read("num_hidden_layers", model.num_hidden_layers);
  section.read("num_attention_heads", model.num_attention_heads);
  section.read("num_key_value_heads", model.num_key_value_heads);
  section.read("head_dim", model.head_dim);
  section.read("max_position_embeddings", model.max_position_embeddings);
  section.read("rope_theta", model.rope_theta);
  model.rope_scaling = rope_scaling(section);
  section.read("rms_norm_eps", model.rms_norm_eps);
  section.read("layer_norm_eps", model.layer_norm_eps);
  section.read("tie_word_embeddings", model.tie_word_embeddings);
  section.read("dropout", model.dropout);
  section.read("initializer_range", model.initializer_range);
  return model;
}

ParallelOptions parallel_options(const Section& section) {
  using layout::ScheduleKind;
  ParallelOptions parallel;
  section.read("tensor", parallel.tensor);
  section.read("pipeline", parallel.pipeline);
  section.read("data", parallel.data);
  section.read("sequence", parallel.sequence);
  section.read("schedule", parallel.schedule,
               {{"gpipe", ScheduleKind::gpipe},
                {"1f1b", ScheduleKind::one_forward_one_backward},
                {"interleaved", ScheduleKind::interleaved}});
  section.read("virtual_stages", parallel.virtual_stages);
  section.read("stage_layers", parallel.stage_layers);
  section.read("zero_level", parallel.zero_level);
  section.read("bucket_bytes", parallel.bucket_bytes);
  return parallel;
}

TrainOptions train_options(const Section& section) {
  TrainOptions train;
  section.read("steps", train.steps);
  section.read("sequence_length", train.sequence_length);
  section.read("micro_batch", train.micro_batch);
  section.read("global_batch", train.global_batch);
  section.read("seed", train.seed);
  section.read("activation_checkpointing", train.activation_checkpointing);
  section.read("memory_limit", train.memory_limit);
  section.read("log_every", train.log_every);
  section.read("log_interval", train.log_interval);
  section.read("profile", train.profile);
  section.read("eval_every", train.eval_every);
  section.read("eval_batches", train.eval_batches);
  section.read("sample_prompts", train.sample_prompts);
  section.read("sample_tokens", train.sample_tokens);
  section.read("sample_temperature", train.sample_temperature);
  section.read("replica_check", train.replica_check);
  return train;
}

OptimizerOptions optimizer_options(const Section& section) {
  OptimizerOptions optimizer;
  section.read("name", optimizer.name,
               {{"adamw", UpdateRule::adamw},
                {"sgd", UpdateRule::sgd},
                {"muon", UpdateRule::muon},
                {"shampoo", UpdateRule::shampoo},
                {"soap", UpdateRule::soap}});
  section.read("learning_rate", optimizer.learning_rate);
  section.read("min_learning_rate", optimizer.min_learning_rate);
  section.read("curve", optimizer.curve,
               {{"constant", LearningRateCurve::constant},
                {"cosine", LearningRateCurve::cosine},
                {"linear", LearningRateCurve::linear},
                {"wsd", LearningRateCurve::wsd}});
  section.read("warmup_steps", optimizer.warmup_steps);
  section.read("decay_steps", optimizer.decay_steps);
  section.read("beta1", optimizer.beta1);
  section.read("beta2", optimizer.beta2);
  section.read("eps", optimizer.eps);
  section.read("momentum", optimizer.momentum);
  section.read("nesterov", optimizer.nesterov);
  section.read("ns_steps", optimizer.ns_steps);
  section.read("ns_coefficients", optimizer.ns_coefficients,
               {{"simple", NewtonSchulzCoefficients::simple},
                {"quintic", NewtonSchulzCoefficients::quintic},
                {"polar_express", NewtonSchulzCoefficients::polar_express}});
  section.read("scale", optimizer.scale,
               {{"original", MatrixScale::original},
                {"match_rms_adamw", MatrixScale::match_rms_adamw},
                {"unit_rms_norm", MatrixScale::unit_rms_norm}});
  section.read("root_every", optimizer.root_every);
  section.read("epsilon", optimizer.epsilon);
  section.read("max_side", optimizer.max_side);
  section.read("adamw_learning_rate", optimizer.adamw_learning_rate);
  section.read("adamw_matrices", optimizer.adamw_matrices);
  section.read("per_head", optimizer.per_head);
  section.read("group_bytes", optimizer.group_bytes);
  section.read("assignment", optimizer.assignment,
               {{"padded", ownership::Assignment::padded},
                {"contiguous", ownership::Assignment::contiguous},
                {"shared", ownership::Assignment::shared}});
  section.read("weight_decay", optimizer.weight_decay);
  section.read("clip_norm", optimizer.clip_norm);
  section.read("skip_nonfinite", optimizer.skip_nonfinite);
  return optimizer;
}

NumericsOptions numerics_options(const Section& section) {
  NumericsOptions numerics;
  section.read("precision", numerics.precision,
               {{"fp32", Precision::fp32}, {"bf16", Precision::bf16}, {"fp8", Precision::fp8}});
  section.read("backend", numerics.backend,
               {{"auto", KernelBackend::automatic},
                {"reference", KernelBackend::reference},
                {"cpu", KernelBackend::cpu},
                {"cuda", KernelBackend::cuda}});
  section.read("attention", numerics.attention,
               {{"auto", AttentionKernels::automatic},
                {"own", AttentionKernels::own},
                {"cudnn", AttentionKernels::cudnn}});
  section.read("deterministic", numerics.deterministic);
  section.read("stochastic_rounding", numerics.stochastic_rounding);
  section.read("cuda_graphs", numerics.cuda_graphs);
  section.read("threads", numerics.threads);
  section.read("peak_flops", numerics.peak_flops);
  return numerics;
}

DataOptions data_options(const Section& section) {
  DataOptions data;
  section.read("train", data.train);
  section.read("validation", data.validation);
  section.read("tokenizer", data.tokenizer);
  section.read("shuffle", data.shuffle);
  section.read("seed", data.seed);
  return data;
}

CheckpointOptions checkpoint_options(const Section& section) {
  CheckpointOptions checkpoint;
  section.read("asynchronous", checkpoint.asynchronous);
  section.read("failures_allowed", checkpoint.failures_allowed);
  section.read("every_steps", checkpoint.every_steps);
  section.read("every_minutes", checkpoint.every_minutes);
  section.read("directory", checkpoint.directory);
  section.read("key_file", checkpoint.key_file);
  section.read("keep_best", checkpoint.keep_best);
  section.read("keep_every", checkpoint.keep_every);
  section.read("keep_last", checkpoint.keep_last);
  section.read("load", checkpoint.load);
  section.read("local_directory", checkpoint.local_directory);
  section.read("local_every_steps", checkpoint.local_every_steps);
  section.read("replicas", checkpoint.replicas);
  return checkpoint;
}

CommOptions comm_options(const Section& section) {
  CommOptions comm;
  section.read("timeout", comm.timeout);
  section.read("start_timeout", comm.start_timeout);
  section.read("backend", comm.backend,
               {{"auto", CommBackend::automatic},
                {"mpi", CommBackend::mpi},
                {"shared", CommBackend::shared},
                {"nccl", CommBackend::nccl},
                {"staged", CommBackend::staged}});
  section.read(
      "require_rdma", comm.require_rdma,
      {{"auto", RequireRdma::automatic}, {"true", RequireRdma::yes}, {"false", RequireRdma::no}});
  section.read("register_buffers", comm.register_buffers,
               {{"none", RegisterBuffers::none},
                {"buffers", RegisterBuffers::buffers},
                {"windows", RegisterBuffers::windows}});
  return comm;
}

RunOptions run_options(const Section& section) {
  RunOptions run;
  section.read("directory", run.directory);
  section.read("name", run.name);
  section.read("tags", run.tags);
  section.read("binding", run.binding,
               {{"auto", BindingRule::automatic}, {"none", BindingRule::none}});
  section.read("order", run.order,
               {{"auto", RankOrder::automatic},
                {"topology", RankOrder::topology},
                {"slurm", RankOrder::slurm}});
  section.read("job_comment", run.job_comment);
  section.read("signal_lead", run.signal_lead);
  return run;
}

TrackOptions track_options(const Section& section) {
  TrackOptions track;
  section.read("to", track.to);
  section.read("interval", track.interval);
  section.read("trace_ranks", track.trace_ranks,
               {{"sampled", TraceRanks::sampled},
                {"single", TraceRanks::single},
                {"first-of-node", TraceRanks::first_of_node},
                {"all", TraceRanks::all}});
  section.read("prometheus_port", track.prometheus_port);
  section.read("prometheus_interface", track.prometheus_interface);
  return track;
}

}  // namespace

Options read_options(const Config& config) {
  return {.model = model_options({config, "model"}),
          .parallel = parallel_options({config, "parallel"}),
          .train = train_options({config, "train"}),
          .optimizer = optimizer_options({config, "optimizer"}),
          .numerics = numerics_options({config, "numerics"}),
          .data = data_options({config, "data"}),
          .checkpoint = checkpoint_options({config, "checkpoint"}),
          .comm = comm_options({config, "comm"}),
          .run = run_options({config, "run"}),
          .track = track_options({config, "track"})};
}

}  // namespace trireme::config
