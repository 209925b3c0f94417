// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/samples.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/engine/stage_layers.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/inference/decoder.hpp"
#include "trireme/model/positions.hpp"

#include "prompts.hpp"
#include "replica_decoding.hpp"

#include <algorithm>

namespace trireme::inference {

namespace {

using base::Json;

base::Result<std::vector<std::string>> read_prompts(const config::Config& config) {
  const auto& path = config.options().train.sample_prompts;
  const auto text = base::read_text_file(path, base::ExitCode::usage, SampleTask::most_bytes);
  if (!text) {
    return base::usage_failure(
        base::format("{}: {} (the key names a file with one prompt a line); write the prompts into "
                     "a file, or name the one that holds them",
                     config.cited("train.sample_prompts"), text.failure().text));
  }
  auto prompts = parse_prompts(*text, path);
  if (!prompts) return prompts.failure();
  if (prompts->empty()) {
    return base::usage_failure(
        base::format("{} has no prompt (there is nothing to continue); write one a line, or leave "
                     "the key empty",
                     config.cited("train.sample_prompts")));
  }
  if (prompts->size() > SampleTask::most_prompts) {
    return base::usage_failure(base::format(
        "{} has {} prompts (training stands still while they are continued); at most {}",
        config.cited("train.sample_prompts"), prompts->size(), SampleTask::most_prompts));
  }
  return prompts;
}

/// The tokenizer that the run keeps.
base::Result<data::Tokenizer> open_tokenizer(const config::Config& config) {
  const auto path = huggingface::tokenizer_to_keep(config);
  if (path.empty()) {
    return base::usage_failure(base::format(
        "{} needs a tokenizer (prompts are text, models read tokens), and none belongs to the run; "
        "name the model's own with data.tokenizer",
        config.cited("train.sample_prompts")));
  }
  auto tokenizer = data::Tokenizer::load(path);
  if (!tokenizer) return base::usage_failure(tokenizer.failure().text);
  return tokenizer;
}

std::vector<DecodedSequence> sequences_of(const SampleTask& task) {
  std::vector<DecodedSequence> sequences;
  for (const auto& ids : task.ids) {
    DecodedSequence sequence;
    sequence.index = static_cast<std::int64_t>(sequences.size());
    sequence.ids = ids;
    sequence.prompt_size = ids.size();
    sequences.push_back(std::move(sequence));
  }
  return sequences;
}

base::Status check_task(const SampleTask& task, const config::Config& config,
                        const model::ModelConfig& model) {
  std::size_t longest = 0;
  for (const auto& ids : task.ids) longest = std::max(longest, ids.size());
  const auto positions = static_cast<std::int64_t>(longest) + task.max_tokens;
  if (auto status =
          model::check_positions(model,
                                 base::format("the longest prompt of {} with {}, {} tokens in all,",
                                              config.cited("train.sample_prompts"),
                                              config.cited("train.sample_tokens"), positions),
                                 positions);
      !status.ok()) {
    return status;
  }
  if (config.options().numerics.on_gpus() && !can_decode_on_gpus(model)) {
    return base::usage_failure(base::format(
        "{} does not go with model.head_dim = {} on GPUs (decoding is own kernels' alone, which "
        "take heads of up to {} there); leave the key empty",
        config.cited("train.sample_prompts"), model.head_dim, device::widest_own_head));
  }
  return {};
}

DecoderOptions decoder_options(const engine::Engine& engine, const SampleTask& task) {
  const auto& trained = engine.options();
  const int stages = trained.sharding.mesh.degree(layout::Axis::pipeline);
  const auto placement = engine::placement_of(trained.schedule, stages);
  DecoderOptions options;
  options.model = trained.model;
  options.mesh = engine.sharding().options().mesh;
  options.rank = engine.sharding().options().rank;
  options.virtual_stages = placement.virtual_stages;
  options.placement_kind = placement.kind;
  options.stage_layers = engine::stage_layers(trained.model, trained.schedule, stages).counts;
  options.dtype = trained.numerics.dtype;
  options.gpu_attention = trained.numerics.gpu_attention;
  fit_to_prompts(options, sequences_of(task), usual_batch, task.max_tokens);
  return options;
}

/// The task as ranks need it: everything but texts and the tokenizer.
std::string packed(const SampleTask& task) {
  return base::json_text(
      Json{{"ids", task.ids}, {"vocabulary", task.vocabulary}, {"stop", task.stop_tokens}});
}

void unpack(const std::string& text, SampleTask& task) {
  const auto json = base::value_or_throw(base::parse_json(text, "the first rank's prompts"));
  task.ids = json.at("ids").get<std::vector<std::vector<std::int32_t>>>();
  task.vocabulary = json.at("vocabulary").get<std::int64_t>();
  task.stop_tokens = json.at("stop").get<std::vector<std::int32_t>>();
}

/// The task as the configuration alone tells it.
SampleTask configured_task(const config::Config& config) {
  const auto& keys = config.options().train;
  SampleTask task;
  task.max_tokens = keys.sample_tokens;
  task.sampling.temperature = keys.sample_temperature;
  task.sampling.seed = static_cast<std::uint64_t>(keys.seed);
  return task;
}

}  // namespace

base::Result<std::optional<SampleTask>> read_sample_task(const config::Config& config,
                                                         const model::ModelConfig& model) {
  if (config.options().train.sample_prompts.empty()) return std::optional<SampleTask>{};
  auto task = configured_task(config);
  auto prompts = read_prompts(config);
  if (!prompts) return prompts.failure();
  task.prompts = *std::move(prompts);
  auto tokenizer = open_tokenizer(config);
  if (!tokenizer) return tokenizer.failure();
  const auto sequences = encode_prompts(task.prompts, *tokenizer, model, "data.tokenizer");
  if (!sequences) return sequences.failure();
  for (const auto& sequence : *sequences) task.ids.push_back(sequence.ids);
  task.vocabulary = tokenizer->vocab_size();
  task.stop_tokens = tokenizer->text_ends().ids;
  task.tokenizer = *std::move(tokenizer);
  if (const auto status = check_task(task, config, model); !status.ok()) return status.failure();
  return std::optional(std::move(task));
}

std::optional<SampleTask> agreed_sample_task(const config::Config& config,
                                             const model::ModelConfig& model,
                                             comm::ProcessGroup& world) {
  if (config.options().train.sample_prompts.empty()) return std::nullopt;
  const bool is_first = world.rank() == 0;
  base::Result<std::optional<SampleTask>> read = std::optional(configured_task(config));
  if (is_first) read = read_sample_task(config, model);
  auto task = comm::agree(world, std::move(read));
  TRIREME_ENSURE(task.has_value(), "a configured task is read, or refused");
  const auto text = comm::broadcast_bytes(world, is_first ? packed(*task) : "");
  if (!is_first) unpack(text, *task);
  return task;
}

struct Sampler::Parts {
  SampleTask task;
  DecoderOptions options;
  comm::AxisGroups groups;
  /// Whether each step gathers weights from all replicas.
  bool gathers_weights = false;
  Decoder decoder;
  std::vector<DecodedSequence> sequences;
};

Sampler::Sampler(SampleTask task, const engine::Engine& engine, const comm::AxisGroups& groups,
                 device::Kernels& kernels, engine::Memory& memory) {
  const auto options = decoder_options(engine, task);
  auto sequences = sequences_of(task);
  // NOLINTNEXTLINE(modernize-make-unique): a decoder cannot be moved to its place.
  parts_.reset(new Parts{std::move(task), options, groups, engine.sharding().divides_parameters(),
                         Decoder(options, engine, groups, kernels, memory), std::move(sequences)});
}

Sampler::~Sampler() = default;

const SampleTask& Sampler::task() const {
  return parts_->task;
}

std::vector<Answer> Sampler::run() {
  const auto& task = parts_->task;
  auto& replicas = parts_->groups.replicas();
  DecodingLimits limits{parts_->options.capacity.slots, parts_->options.rows_at_once,
                        task.max_tokens, task.vocabulary, task.stop_tokens};
  if (parts_->gathers_weights) limits.together = &replicas;
  ReplicaDecoding decoding(parts_->decoder, limits, task.sampling,
                           share_of(parts_->sequences, replicas),
                           [](const DecodedSequence&, std::int32_t) {});
  decoding.run();
  // Only the replicas of the first rank have a reader of their answers.
  if (replicas.ranks().front().value() != 0) return {};
  const auto all = gather(parts_->sequences, decoding.sequences(), task.max_tokens, replicas);
  std::vector<Answer> answers;
  if (!task.tokenizer) return answers;
  for (const auto& sequence : all) {
    answers.push_back(answer_of(sequence, *task.tokenizer, StopTexts({})));
  }
  return answers;
}

engine::Beside decoder_beside(const std::optional<SampleTask>& task) {
  if (!task) return {};
  return [&task = *task](engine::Engine& engine, const comm::AxisGroups& groups,
                         device::Kernels& kernels, engine::Memory& memory) {
    Decoder(decoder_options(engine, task), engine, groups, kernels, memory).run_largest();
  };
}

}  // namespace trireme::inference
