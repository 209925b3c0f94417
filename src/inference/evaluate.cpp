// SPDX-License-Identifier: Apache-2.0
#include "trireme/inference/evaluate.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/config/resolved_text.hpp"
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/dataset.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/huggingface/weights.hpp"
#include "trireme/inference/groups.hpp"

#include "text_bytes.hpp"

#include <chrono>
#include <cmath>

namespace trireme::inference {

namespace fs = std::filesystem;
using layout::Axis;

namespace {

using Clock = std::chrono::steady_clock;

/// Weights to evaluate: as given, else the run's own newest step, else the configured start of the
/// run.
fs::path asked_weights(const fs::path& given, const config::Config& config) {
  if (!given.empty()) return given;
  const auto run = config::run_directory(config);
  const auto load = config.options().checkpoint.load.value_or("none");
  const bool has_steps = !checkpoint::list(checkpoint::checkpoints_of_run(run)).empty();
  return has_steps || load == "none" ? run : fs::path(load);
}

/// Step, held, or Hugging Face folder of the weights.
base::Result<checkpoint::StepFolder> find_weights(const fs::path& given,
                                                  const config::Config& config) {
  const auto path = asked_weights(given, config);
  if (huggingface::is_model_folder(path)) return checkpoint::StepFolder{path};
  auto step = checkpoint::find_step(path);
  if (step) return step;
  return base::Failure{
      step.failure().code,
      base::format("no weights to evaluate: {}; --weights names a step, a run or a Hugging Face "
                   "folder",
                   step.failure().text)};
}

/// Rank 0 decides, so that a run that saves meanwhile cannot give the ranks different steps, and
/// holds the step, so that the run does not remove it.
checkpoint::StepFolder find_weights_together(const fs::path& given, const config::Config& config,
                                             comm::ProcessGroup& world) {
  base::Result<checkpoint::StepFolder> found = checkpoint::StepFolder{};
  if (world.rank() == 0) found = find_weights(given, config);
  auto weights = comm::agree(world, std::move(found));
  weights.path = comm::broadcast_bytes(world, weights.path.string());
  return weights;
}

/// Options with as many micro-batches as stages, which fill the pipeline; the size of a step does
/// not change a sum over all samples.
base::Result<engine::EngineOptions> evaluation_options(const config::Config& config,
                                                       const model::ModelConfig& model,
                                                       const runtime::Cluster& cluster) {
  const auto batch = config.options().train.micro_batch * cluster.mesh.degree(Axis::data) *
                     cluster.mesh.degree(Axis::pipeline);
  const auto shaped = config.with("train.global_batch", base::format("{}", batch),
                                  config::Origin::program("trireme eval"));
  if (!shaped) return shaped.failure();
  auto options = engine::options_from(*shaped, model, cluster.mesh, cluster.rank);
  if (options) options->use = engine::Use::evaluation;
  return options;
}

/// Adds the run's own training and evaluation settings for keys that are not given.
base::Result<config::Config> with_settings_of_run(config::Config config,
                                                  const checkpoint::Manifest& manifest) {
  const auto text = manifest.state.value("config", std::string());
  for (const auto* key :
       {"train.sequence_length", "train.micro_batch", "numerics.precision", "data.validation"}) {
    const auto value = config::resolved_value(text, key);
    if (config.given(key) || !value) continue;
    auto with = config.with(key, *value, config::Origin::program("the run's own"));
    if (!with) return with.failure();
    config = *std::move(with);
  }
  return config;
}

/// Limits the length to the model's: weights alone do not record the length of training sequences.
base::Result<config::Config> with_length_of_model(const config::Config& config,
                                                  const model::ModelConfig& model) {
  if (config.given("train.sequence_length") ||
      config.options().train.sequence_length <= model.max_position_embeddings) {
    return config;
  }
  return config.with("train.sequence_length", base::format("{}", model.max_position_embeddings),
                     config::Origin::program("max_position_embeddings of the weights"));
}

/// Weights, and how they are evaluated.
struct Subject {
  fs::path weights;
  /// Step of a checkpoint; none for a Hugging Face folder.
  std::optional<std::int64_t> step;
  model::ModelConfig model;
  config::Config config;
};

base::Result<Subject> subject_of(const fs::path& weights, const config::Config& config) {
  auto model = huggingface::model_of_weights(weights, config);
  if (!model) return model.failure();
  Subject subject{weights, std::nullopt, *std::move(model), config};
  if (!huggingface::is_model_folder(weights)) {
    const auto manifest = checkpoint::read_manifest(weights);
    if (!manifest) return manifest.failure();
    subject.step = manifest->step;
    auto own = with_settings_of_run(config, *manifest);
    if (!own) return own.failure();
    subject.config = *std::move(own);
  }
  auto fitting = with_length_of_model(subject.config, subject.model);
  if (!fitting) return fitting.failure();
  subject.config = *std::move(fitting);
  return subject;
}

}  // namespace

engine::EvaluationOutcome evaluate(const data::TokenDataset& dataset, engine::Engine& engine,
                                   std::int64_t batches) {
  const auto outcome = evaluate_while(dataset, engine, batches, [] { return true; });
  TRIREME_ENSURE(outcome.has_value(), "an evaluation that nothing stops has an outcome");
  return *outcome;
}

std::optional<engine::EvaluationOutcome> evaluate_while(const data::TokenDataset& dataset,
                                                        engine::Engine& engine,
                                                        std::int64_t batches,
                                                        const std::function<bool()>& goes_on) {
  const engine::BatchLoader loader(dataset);
  const auto end = static_cast<std::uint64_t>(dataset.sample_count());
  const auto batch = static_cast<std::uint64_t>(engine::global_batch(engine.options()));
  engine::EvaluationOutcome total;
  for (std::int64_t index = 0; index < batches; ++index) {
    const auto cursor = static_cast<std::uint64_t>(index) * batch;
    if (cursor >= end) break;
    if (index > 0 && !goes_on()) return std::nullopt;
    loader.fill(engine, cursor, end);
    const auto outcome = engine.evaluate();
    total.loss_sum += outcome.loss_sum;
    total.tokens += outcome.tokens;
  }
  return total;
}

Evaluation evaluate_weights(const fs::path& weights, const config::Config& config,
                            runtime::Session& session) {
  auto& world = *session.cluster.world;
  const auto key = checkpoint::read_key_on_first_rank(config.options().checkpoint.key_file, world);
  Evaluation evaluation;
  // Held until all is read.
  const auto found = find_weights_together(weights, config, world);
  evaluation.weights = found.path;
  const auto subject = comm::agree(world, subject_of(evaluation.weights, config));
  const auto& model = subject.model;
  const auto options =
      comm::agree(world, evaluation_options(subject.config, model, session.cluster));
  const auto dataset =
      engine::open_dataset(subject.config.options(), engine::Split::validation, model, world);
  const auto bytes =
      comm::agree(world, TextBytes::of_weights(evaluation.weights, config, model.vocab_size));
  auto memory = engine::Memory::on(session.kernels->device(), engine::measure(options));
  engine::Engine engine(options, groups_of(session.cluster), *session.kernels, memory);
  huggingface::load_parameters(evaluation.weights, engine, world, key);
  evaluation.step = subject.step;
  const auto begin = Clock::now();
  const auto outcome = evaluate(*dataset, engine);
  evaluation.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  evaluation.sequences = dataset->sample_count();
  evaluation.sequence_length = options.sequence_length;
  evaluation.tokens = outcome.tokens;
  evaluation.loss = outcome.loss_sum / static_cast<double>(outcome.tokens);
  if (bytes) evaluation.bytes = bytes->predicted(*dataset);
  return evaluation;
}

double Evaluation::perplexity() const {
  return std::exp(loss);
}

std::optional<double> Evaluation::bits_per_byte() const {
  if (!bytes || *bytes == 0) return std::nullopt;
  return loss * static_cast<double>(tokens) / std::log(2.0) / static_cast<double>(*bytes);
}

base::Json to_json(const Evaluation& evaluation) {
  base::Json json;
  json["weights"] = evaluation.weights.string();
  json["step"] = evaluation.step ? base::Json(*evaluation.step) : base::Json(nullptr);
  json["loss"] = evaluation.loss;
  json["perplexity"] = evaluation.perplexity();
  const auto bits = evaluation.bits_per_byte();
  json["bits_per_byte"] = bits ? base::Json(*bits) : base::Json(nullptr);
  json["tokens"] = evaluation.tokens;
  json["bytes"] = evaluation.bytes ? base::Json(*evaluation.bytes) : base::Json(nullptr);
  json["sequences"] = evaluation.sequences;
  json["sequence_length"] = evaluation.sequence_length;
  json["seconds"] = evaluation.seconds;
  json["tokens_per_second"] = static_cast<double>(evaluation.tokens) / evaluation.seconds;
  return json;
}

std::string text(const Evaluation& evaluation) {
  auto text = base::format("weights        {}\n", evaluation.weights.string());
  if (evaluation.step) text += base::format("step           {}\n", *evaluation.step);
  text += base::format("held out       {} tokens in {} sequences of {}\n", evaluation.tokens,
                       evaluation.sequences, evaluation.sequence_length);
  text += base::format("loss           {} nats a token\n", base::fixed_text(evaluation.loss, 6));
  text += base::format("perplexity     {}\n", base::fixed_text(evaluation.perplexity(), 4));
  if (const auto bits = evaluation.bits_per_byte(); bits && evaluation.bytes) {
    text += base::format("bits per byte  {} ({} bytes of text)\n", base::fixed_text(*bits, 4),
                         *evaluation.bytes);
  } else if (!evaluation.bytes) {
    text +=
        "bits per byte  not known: no tokenizer belongs to the weights (data.tokenizer names "
        "one)\n";
  }
  text += base::format("time           {:.2f} s, {:.0f} tokens/s\n", evaluation.seconds,
                       static_cast<double>(evaluation.tokens) / evaluation.seconds);
  return text;
}

}  // namespace trireme::inference
