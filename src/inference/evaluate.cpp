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
#include "trireme/engine/from_config.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/huggingface/weights.hpp"

#include "text_bytes.hpp"

#include <charconv>
#include <chrono>

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
  const auto program = config::Origin::program("trireme eval");
  // Nothing is divided where nothing is updated.
  const auto undivided = config.with("parallel.zero_level", "0", program);
  if (!undivided) return undivided.failure();
  const auto shaped = undivided->with("train.global_batch", base::format("{}", batch), program);
  if (!shaped) return shaped.failure();
  auto options = engine::options_from(*shaped, model, cluster.mesh, cluster.rank);
  if (!options) return options;
  options->use = engine::Use::evaluation;
  return options;
}

/// Adds the run's own training and evaluation settings for keys that are not given.
base::Result<config::Config> with_settings_of_run(config::Config config,
                                                  const checkpoint::Manifest& manifest) {
  const auto text = manifest.state.value("config", std::string());
  for (const auto* key : {"train.sequence_length", "train.document_mask", "train.micro_batch",
                          "numerics.precision", "data.validation"}) {
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
  /// Most that one of the run's own evaluations takes.
  std::int64_t sequences_of_run = std::numeric_limits<std::int64_t>::max();
};

/// The run's own limit of an evaluation.
std::int64_t sequences_of_run(const checkpoint::Manifest& manifest) {
  const auto text = manifest.state.value("config", std::string());
  const auto number = [&](const char* key) {
    std::int64_t value = 0;
    const auto found = config::resolved_value(text, key).value_or("");
    std::from_chars(found.data(), found.data() + found.size(), value);
    return value;
  };
  const auto batches = number("train.eval_batches");
  const auto batch = number("train.global_batch");
  // 0: all.
  return batches > 0 && batch > 0 ? batches * batch : std::numeric_limits<std::int64_t>::max();
}

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
    subject.sequences_of_run = sequences_of_run(*manifest);
  }
  auto fitting = with_length_of_model(subject.config, subject.model);
  if (!fitting) return fitting.failure();
  subject.config = *std::move(fitting);
  return subject;
}

void count_bytes(const TextBytes& bytes, const data::TokenDataset& dataset,
                 Evaluation& evaluation) {
  const auto parts = dataset.parts();
  evaluation.bytes = 0;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const auto of_part = bytes.predicted(dataset, parts[index]);
    *evaluation.bytes += of_part;
    if (!evaluation.sources.empty()) evaluation.sources[index].bytes = of_part;
  }
}

/// Losses of all samples in [begin, end) of an order; nothing if it was stopped.
class Passage {
 public:
  Passage(const data::TokenDataset& dataset, engine::Engine& engine, engine::SampleOrder order,
          const std::function<bool()>& goes_on)
      : loader_(dataset, engine, order), engine_(engine), goes_on_(goes_on) {}

  std::optional<engine::EvaluationOutcome> take(std::uint64_t begin, std::uint64_t end) {
    const auto batch = static_cast<std::uint64_t>(engine_.global_batch());
    engine::EvaluationOutcome total;
    for (auto cursor = begin; cursor < end; cursor += batch) {
      if (batches_++ > 0 && !goes_on_()) return std::nullopt;
      loader_.fill(cursor, end);
      const auto outcome = engine_.evaluate();
      total.loss_sum += outcome.loss_sum;
      total.tokens += outcome.tokens;
    }
    return total;
  }

 private:
  engine::BatchLoader loader_;
  engine::Engine& engine_;
  const std::function<bool()>& goes_on_;
  std::int64_t batches_ = 0;
};

double mean(const engine::EvaluationOutcome& outcome) {
  return outcome.loss_sum / static_cast<double>(outcome.tokens);
}

std::optional<HeldOutLoss> whole_pass(const data::TokenDataset& dataset, Passage passage) {
  const auto parts = dataset.parts();
  HeldOutLoss found;
  for (std::size_t index = 0; index < parts.size(); ++index) {
    const auto outcome = passage.take(parts[index].begin, parts[index].end);
    if (!outcome) return std::nullopt;
    found.loss += parts[index].share * mean(*outcome);
    found.tokens += outcome->tokens;
    if (parts.size() == 1) continue;
    found.sources.push_back({dataset.sources()[index].path().string(), parts[index].share,
                             outcome->tokens, mean(*outcome)});
  }
  return found;
}

}  // namespace

HeldOutLoss evaluate(const data::TokenDataset& dataset, engine::Engine& engine,
                     std::int64_t batches) {
  const auto found = evaluate_while(dataset, engine, batches, [] { return true; });
  TRIREME_ENSURE(found.has_value(), "an evaluation that nothing stops has an outcome");
  return *found;
}

std::optional<HeldOutLoss> evaluate_while(const data::TokenDataset& dataset, engine::Engine& engine,
                                          std::int64_t batches,
                                          const std::function<bool()>& goes_on) {
  const auto all = dataset.sample_count();
  const auto batch = engine.global_batch();
  // Compared without a product: all batches are the largest number that there is.
  const bool whole = batches >= (all + batch - 1) / batch;
  const auto sequences = whole ? all : batches * batch;
  std::optional<HeldOutLoss> found;
  if (whole) {
    found = whole_pass(dataset, {dataset, engine, engine::SampleOrder::whole_pass, goes_on});
  } else if (const auto outcome = Passage(dataset, engine, engine::SampleOrder::drawn, goes_on)
                                      .take(0, static_cast<std::uint64_t>(sequences))) {
    found = HeldOutLoss{.loss = mean(*outcome), .tokens = outcome->tokens};
  }
  if (found) {
    found->sequences = sequences;
    found->all_sequences = all;
  }
  return found;
}

Evaluation evaluate_weights(const fs::path& weights, const config::Config& config,
                            runtime::Session& session) {
  auto& world = *session.cluster.world;
  const auto key = checkpoint::read_key_on_first_rank(config.options().checkpoint.key_file, world);
  Evaluation evaluation;
  // Held until all is read.
  const auto step = find_weights_together(weights, config, world);
  evaluation.weights = step.path;
  const auto subject = comm::agree(world, subject_of(evaluation.weights, config));
  const auto& model = subject.model;
  const auto options =
      comm::agree(world, evaluation_options(subject.config, model, session.cluster));
  const auto dataset =
      engine::open_dataset(subject.config.options(), engine::Split::validation, model, world);
  const auto bytes =
      comm::agree(world, TextBytes::of_weights(evaluation.weights, config, model.vocab_size));
  auto memory = engine::Memory::on(session.kernels->device(), engine::measure(options));
  engine::Engine engine(options, session.cluster.groups.views(), *session.kernels, memory);
  huggingface::load_parameters(evaluation.weights, engine, world, key);
  evaluation.step = subject.step;
  const auto begin = Clock::now();
  auto found = evaluate(*dataset, engine);
  evaluation.seconds = std::chrono::duration<double>(Clock::now() - begin).count();
  evaluation.sequences = found.sequences;
  evaluation.sequence_length = options.schedule.sequence_length;
  evaluation.tokens = found.tokens;
  evaluation.loss = found.loss;
  evaluation.sources = std::move(found.sources);
  if (subject.sequences_of_run < found.all_sequences) {
    evaluation.sequences_of_run = subject.sequences_of_run;
  }
  if (bytes) count_bytes(*bytes, *dataset, evaluation);
  return evaluation;
}

}  // namespace trireme::inference
