// SPDX-License-Identifier: Apache-2.0
#include "train/start/setup.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/folder.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/data/prepare.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/huggingface/run_files.hpp"
#include "trireme/huggingface/weights.hpp"
#include "trireme/model/model_keys.hpp"
#include "trireme/record/failure.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/telemetry/metrics.hpp"
#include "trireme/train/continuation.hpp"

#include "train/start/resolved_values.hpp"

#include <algorithm>

namespace trireme::train {

namespace fs = std::filesystem;

base::Result<model::ModelConfig> model_from(const config::Config& config) {
  std::int64_t vocabulary = 0;
  const auto known = huggingface::known_model(config);
  if (!known) return known.failure();
  const auto tokenizer = huggingface::tokenizer_of_run(config);
  const bool unnamed =
      !*known && !config.options().model.vocab_size && config.options().model.from.empty();
  if (unnamed && !tokenizer.empty()) {
    auto loaded = data::Tokenizer::load(tokenizer, data::DeclaredEnds::ignore);
    if (!loaded) return loaded.failure();
    vocabulary = loaded->vocab_size();
  }
  return huggingface::configured_model(*known ? model::with_model(config, **known) : config,
                                       vocabulary);
}

namespace {

/// True if the directory has no files of a run: a lock is not a run yet, and a failed start leaves
/// failure files.
bool is_unused(const fs::path& directory) {
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(directory, error)) {
    const auto name = entry.path().filename().string();
    if (name != "lock" && !name.starts_with("failure")) return false;
  }
  return !error || error == std::errc::no_such_file_or_directory;
}

/// Warns of documents that begin otherwise than prompts do: both follow from the tokenizer.
void say_begin_of_text(const config::Config& config, const fs::path& path) {
  const auto tokenizer = data::Tokenizer::load(path, data::DeclaredEnds::ignore);
  if (!tokenizer) return;
  std::vector<fs::path> files;
  for (const auto& source : config.options().data.train) files.emplace_back(source.text);
  const auto difference = data::difference_in_begin(files, *tokenizer);
  if (difference) base::log::warning("data", "{}", *difference);
}

base::Status refuse_used(const fs::path& directory) {
  if (is_unused(directory)) return {};
  return base::usage_failure(base::format(
      "run directory '{}' is not empty (--fresh overwrites nothing); remove it, choose another "
      "run.directory, or drop --fresh to continue it",
      directory.string()));
}

/// Limits of the wait for the lock, because other ranks wait meanwhile.
record::RunLock::Options lock_options(const config::Config& config) {
  record::RunLock::Options options;
  const auto patience = std::chrono::duration<double>(config.options().comm.timeout / 2);
  options.requeue_patience = std::min(
      options.requeue_patience, std::chrono::duration_cast<std::chrono::milliseconds>(patience));
  return options;
}

}  // namespace

base::Result<record::RunLock> open_run(const config::Config& config, Start start,
                                       const std::string& job) {
  const auto directory = config::run_directory(config);
  const auto refusal = [&] {
    return start == Start::fresh ? refuse_used(directory) : base::Status{};
  };
  if (const auto missing = check_tokenizer_is_there(config); !missing) return missing.failure();
  // Checked before anything is written; and again under the lock, because another start may have
  // been faster.
  if (const auto refused = refusal(); !refused) return refused.failure();
  auto lock = record::RunLock::take(directory, job, lock_options(config));
  if (!lock) return lock.failure();
  if (const auto refused = refusal(); !refused) return refused.failure();
  record::put_failure_aside(directory);
  record::keep_room_for_failure(directory);
  return lock;
}

void write_run_files(const config::Config& config, const model::ModelConfig& model) {
  const auto directory = config::run_directory(config);
  base::write_file_durably(directory / config::resolved_file_name, config.resolved_text());
  huggingface::keep_model(model, directory);
  // Copied from other folders, which the run needs no more.
  const auto tokenizer = huggingface::tokenizer_to_keep(config);
  if (tokenizer.empty()) return;
  huggingface::keep_tokenizer(tokenizer, directory);
  say_begin_of_text(config, tokenizer);
}

base::Status check_run_directory(const config::Config& config) {
  const auto directory = config::run_directory(config);
  const auto fault = base::folder_fault(directory);
  if (fault.empty()) return {};
  return base::Failure{
      base::ExitCode::checkpoint,
      base::format("run.directory = {} cannot be made or written to ({}); name a folder that can",
                   directory.string(), fault)};
}

base::Status enter_run(const fs::path& directory, base::Rank rank) {
  std::error_code error;
  fs::create_directories(directory / "log", error);
  if (error) {
    return base::Failure{
        base::ExitCode::checkpoint,
        base::format("cannot make '{}': {}", (directory / "log").string(), error.message())};
  }
  auto log = base::log::settings();
  log.file = record::rank_log(directory, rank).string();
  base::log::configure(log);
  return {};
}

void refuse_emptied(const fs::path& directory, const fs::path& checkpoints,
                    comm::ProcessGroup& world) {
  comm::agree_after(world, [&] {
    if (world.rank() != 0) return;
    const auto recorded = telemetry::recorded_steps(directory / "metrics.jsonl");
    if (recorded.saved > 0) {
      throw base::Error(
          base::ExitCode::checkpoint,
          base::format("run directory '{}' has the record of {} steps, of which step {} was saved, "
                       "but '{}' has no checkpoint any more (training would begin at step 1 again, "
                       "over that record); put the checkpoints back, choose another run.directory, "
                       "or set checkpoint.load = none to begin anew here",
                       directory.string(), recorded.done, recorded.saved, checkpoints.string()));
    }
    if (recorded.done > 0) {
      base::log::warning("train",
                         "an earlier start of this run has ended after step {} and before its "
                         "first save (checkpoint.every_minutes): its steps are done again",
                         recorded.done);
    }
  });
}

void say_left_steps(const fs::path& checkpoints) {
  const auto steps = checkpoint::list(checkpoints);
  if (steps.empty()) return;
  base::log::warning("train",
                     "the run begins anew beside its step {} in '{}', from which a later start "
                     "without checkpoint.load = none goes on (the newest step counts); to keep to "
                     "the new beginning, move its steps away, or choose another run.directory",
                     steps.front().step, checkpoints.string());
}

void say_attention(const device::Kernels& kernels, const device::AttentionSize& size,
                   comm::ProcessGroup& world) {
  const auto text = comm::agree(world, kernels.attention_text(size));
  if (text.sentence.empty()) return;
  switch (text.kind) {
    case device::AttentionText::Kind::as_wished:
      return base::log::info("train", "{}", text.sentence);
    case device::AttentionText::Kind::slower:
      break;
  }
  base::log::warning("train", "{}", text.sentence);
}

void say_documents(const data::TokenDataset& dataset) {
  std::int64_t documents = 0;
  for (const auto& source : dataset.sources()) documents += source.document_count();
  base::log::info("train",
                  "documents attend to themselves alone (train.document_mask): {} in {} tokens",
                  documents, dataset.token_count());
}

void say_changes(const config::Config& resolved) {
  const auto changes = changes_since_last_start(resolved);
  constexpr std::size_t most = 8;
  if (changes.empty()) return;
  const auto told = std::min(most, changes.size());
  const std::vector<std::string> first(changes.begin(),
                                       changes.begin() + static_cast<std::ptrdiff_t>(told));
  base::log::info("train", "changed since the last start: {}{}", base::join(first, ", "),
                  changes.size() > told
                      ? base::format(", and {} more (trireme config diff)", changes.size() - told)
                      : "");
}

Resumed start_from(const fs::path& path, engine::Engine& engine, comm::ProcessGroup& world,
                   const checkpoint::LoadOptions& options) {
  if (huggingface::is_model_folder(path)) {
    huggingface::load_parameters(path, engine, world);
    return {};
  }
  return resume_from(path, engine, world, options);
}

std::optional<telemetry::PredictedStep> predicted_step(const StartOptions& start,
                                                       const engine::EngineOptions& options) {
  if (!start.predict) return std::nullopt;
  auto predicted = start.predict(options);
  if (predicted) return *std::move(predicted);
  base::log::warning("train", "no step is predicted: {}", predicted.failure().text);
  return std::nullopt;
}

}  // namespace trireme::train
