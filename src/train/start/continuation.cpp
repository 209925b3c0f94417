// SPDX-License-Identifier: Apache-2.0
#include "trireme/train/continuation.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/place.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/config/resolved_text.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/huggingface/weights.hpp"
#include "trireme/model/model_keys.hpp"
#include "trireme/train/trainer.hpp"

#include <algorithm>

namespace trireme::train {
namespace {

namespace fs = std::filesystem;
using base::format;

bool is_file(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored);
}

/// State of the newest step whose manifest can be read; none without one.
std::optional<base::Json> newest_state(const fs::path& run) {
  for (const auto& step : checkpoint::list(checkpoint::checkpoints_of_run(run))) {
    if (auto manifest = checkpoint::read_manifest(step.path)) return std::move(manifest->state);
  }
  return std::nullopt;
}

base::Failure other_model(const std::vector<std::string>& texts, const fs::path& run) {
  return base::usage_failure(format(
      "{} of the run '{}' (a run keeps its model: its weights mean nothing in another one); leave "
      "out what differs to go on with the run, or give the other model a run.directory of its own",
      base::join(texts, ", "), run.string()));
}

/// Model of the folder model.from; none where the folder is gone: the run has what it said.
base::Result<std::optional<model::ModelConfig>> model_of_from(const config::Config& config) {
  using Found = std::optional<model::ModelConfig>;
  const fs::path folder = config.options().model.from;
  if (folder.empty() || !is_file(folder / "config.json")) return Found{};
  auto model = huggingface::read_config(folder);
  if (!model) return model.failure();
  return Found{*std::move(model)};
}

base::Status check_tokenizer(const config::Config& config, const fs::path& run) {
  const fs::path named = config.options().data.tokenizer;
  const auto own = run / "tokenizer.json";
  if (named.empty() || !is_file(named) || !is_file(own)) return {};
  const auto same = huggingface::are_same_tokenizer(named, own);
  if (!same) return same.failure();
  if (*same) return {};
  return base::usage_failure(format(
      "{} is not the tokenizer that the run '{}' was trained with, its tokenizer.json (the run's "
      "weights know tokens by their numbers); leave the key out to go on with the run, or set "
      "another run.directory",
      config.cited("data.tokenizer"), run.string()));
}

base::Result<config::Config> with_batch_of_run(const config::Config& config,
                                               const base::Json& state) {
  const auto recorded = state.value("config", std::string());
  const auto batch = config::resolved_value(recorded, "train.global_batch");
  if (!config.automatic("train.global_batch") || !batch || *batch == "auto") return config;
  return config.with("train.global_batch", *batch, config::Origin::program(std::string(own_value)));
}

base::Result<config::Config> continued_from(const config::Config& config, const base::Json& state) {
  const auto run = config::run_directory(config);
  if (auto status = check_tokenizer(config, run); !status.ok()) return status.failure();
  if (!state.contains("model")) return with_batch_of_run(config, state);
  const auto trained = huggingface::parse_config(state["model"]);
  if (!trained) return trained.failure();
  const auto from = model_of_from(config);
  if (!from) return from.failure();
  const auto texts = model::contradictions(config, *trained, *from);
  if (!texts.empty()) return other_model(texts, run);
  return with_batch_of_run(model::with_trained_model(config, *trained), state);
}

/// Weights that a new run begins with may be of a model that differs, but not in its tensors.
base::Result<Continuation> begun(const config::Config& config) {
  const auto load = config.options().checkpoint.load.value_or("none");
  if (load == "none" || load.empty()) return Continuation{config};
  const auto trained = huggingface::model_of_weights(load);
  if (!trained) return trained.failure();
  const auto model = model_from(config);
  if (!model) return model.failure();
  const auto texts = model::differences(*model, *trained);
  if (texts.empty()) return Continuation{config};
  if (!model::has_same_tensors(*model, *trained)) {
    return base::usage_failure(
        format("{} of {} (its tensors do not fit this model); leave out the keys of the model to "
               "take that of the weights",
               base::join(texts, ", "), config.cited("checkpoint.load")));
  }
  return Continuation{config,
                      {format("the model is not that of {}: {}", config.cited("checkpoint.load"),
                              base::join(texts, ", "))}};
}

/// Keys of `to` that differ from `from`, as text for other ranks.
std::string changes_text(const config::Config& from, const config::Config& to) {
  auto changes = base::Json::array();
  for (const auto& change : config::diff(from, to)) {
    changes.push_back({change.key, change.second, change.second_origin.text()});
  }
  return base::json_text(changes);
}

config::Config with_changes(config::Config config, const std::string& text) {
  for (const auto& change : base::value_or_throw(base::parse_json(text, "the first rank"))) {
    const auto origin = config::Origin::program(change[2].get<std::string>());
    config = base::value_or_throw(
        config.with(change[0].get<std::string>(), change[1].get<std::string>(), origin));
  }
  return config;
}

void say(const std::vector<std::string>& notes) {
  for (const auto& note : notes) base::log::warning("train", "{}", note);
}

}  // namespace

base::Result<Continuation> continued(const config::Config& config) {
  if (config.options().checkpoint.load == "none") return Continuation{config};
  try {
    const auto state = newest_state(config::run_directory(config));
    if (!state) return begun(config);
    const auto own = continued_from(config, *state);
    if (!own) return own.failure();
    return Continuation{*own};
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
}

config::Config continued_together(const config::Config& config, const layout::Mesh& mesh,
                                  comm::ProcessGroup& world) {
  base::Status status;
  std::string changes = "[]";
  if (world.rank() == 0) {
    const auto own = continued(config);
    if (own) {
      changes = changes_text(config, own->config);
      say(own->notes);
    } else {
      status = own.failure();
    }
  }
  comm::agree(world, status);
  const auto with = with_changes(config, comm::broadcast_bytes(world, changes));
  const auto fitting = comm::agree(world, with_own_batch(with, mesh));
  say(fitting.notes);
  return fitting.config;
}

base::Result<Continuation> with_own_batch(const config::Config& config, const layout::Mesh& mesh) {
  const auto& train = config.options().train;
  if (config.origin("train.global_batch").text() != own_value || !train.global_batch) {
    return Continuation{config};
  }
  const std::int64_t replicas = mesh.degree(layout::Axis::data);
  const auto batch = *train.global_batch;
  if (batch % replicas != 0) {
    return base::usage_failure(format(
        "the run's own batch of {} sequences cannot be shared evenly by {} replicas (a run keeps "
        "its batch, or its losses would not go on as before); start so many that they divide it, "
        "or set train.global_batch",
        batch, replicas));
  }
  auto micro_batch = std::min(train.micro_batch, batch / replicas);
  while (batch / replicas % micro_batch != 0) --micro_batch;
  if (micro_batch == train.micro_batch) return Continuation{config};
  auto with = config.with("train.micro_batch", format("{}", micro_batch),
                          config::Origin::program(std::string(own_value) + " batch"));
  if (!with) return with.failure();
  return Continuation{*std::move(with),
                      {format("train.micro_batch is {} instead of {}: the run keeps its batch of "
                              "{} sequences, which {} replicas share now",
                              micro_batch, train.micro_batch, batch, replicas)}};
}

base::Status check_tokenizer_is_there(const config::Config& config) {
  const auto tokenizer = huggingface::tokenizer_to_keep(config);
  if (tokenizer.empty() || is_file(tokenizer)) return {};
  return base::Failure{
      base::ExitCode::checkpoint,
      format("{}: there is no such file, and the run '{}' has no tokenizer of its own (it would "
             "keep a copy); name the tokenizer.json that made the tokens, or leave the key out",
             config.cited("data.tokenizer"), config::run_directory(config).string())};
}

base::Status check_model(const model::ModelConfig& model, const base::Json& state,
                         const fs::path& run) {
  if (!state.contains("model")) return {};
  const auto trained = huggingface::parse_config(state["model"]);
  if (!trained) return trained.failure();
  const auto texts = model::differences(model, *trained);
  return texts.empty() ? base::Status{} : other_model(texts, run);
}

std::vector<std::string> changes_since_last_start(const config::Config& resolved) {
  const auto file = config::run_directory(resolved) / config::resolved_file_name;
  if (!is_file(file)) return {};
  const auto last =
      config::resolve_as_recorded({.files = {file}, .environment = {}, .settings = {}});
  if (!last) return {};
  std::vector<std::string> texts;
  for (const auto& change : config::diff(*last, resolved)) {
    if (change.concern == schema::Concern::running) continue;
    texts.push_back(format("{} {} -> {}", change.key, change.first, change.second));
  }
  return texts;
}

}  // namespace trireme::train
