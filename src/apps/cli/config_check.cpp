// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/config_check.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/checkpoint/place.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/config/arrangement.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/data/exposure.hpp"
#include "trireme/engine/dataset.hpp"
#include "trireme/engine/from_config.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/inference/samples.hpp"
#include "trireme/track/target.hpp"
#include "trireme/train/continuation.hpp"
#include "trireme/train/trainer.hpp"

#include "apps/chosen_layout.hpp"
#include "apps/save_interval.hpp"

#include <algorithm>
#include <filesystem>

namespace trireme::apps {
namespace {

namespace fs = std::filesystem;
using base::format;

/// Vocabulary size for a model whose tokenizer does not exist yet.
constexpr std::int64_t some_vocabulary = 1 << 16;

/// Smallest number of ranks for the degrees; numbers above the range are left to the mesh.
int fewest_ranks(const config::Config& config) {
  constexpr std::int64_t most = 1 << 24;
  return static_cast<int>(std::min(most, config::least_world(config)));
}

/// Why the model cannot be known here; empty where it can.
std::string unknown_model(const config::Config& config) {
  if (const auto chosen = keys_to_choose(config); !chosen.empty()) {
    return format("the model and how it fits its layout ({} = auto is chosen at the start)",
                  chosen.front());
  }
  const auto& keys = config.options();
  const auto& folder = keys.model.from;
  const bool known_to_run = base::exists(config::run_directory(config) / "model.json");
  const bool starts_from = keys.checkpoint.load.value_or("none") != "none";
  if (!keys.model.architecture && folder.empty() && !known_to_run && !starts_from) {
    return "the model and how it fits its layout (neither model.architecture nor model.from is "
           "given)";
  }
  if (!folder.empty() && !base::exists(fs::path(folder) / "config.json")) {
    return format("the model and how it fits its layout (there is no '{}' here)",
                  folder + "/config.json");
  }
  return {};
}

/// True if the size of the vocabulary is that of a tokenizer.
bool vocabulary_is_of_tokenizer(const config::Config& config) {
  const auto& keys = config.options();
  return !keys.model.vocab_size && keys.model.from.empty() && !keys.data.tokenizer.empty() &&
         !base::exists(config::run_directory(config) / "model.json");
}

/// Samples of a step on the layout, which the options of its first rank fit.
base::Result<std::int64_t> check_layout(const config::Config& config,
                                        const model::ModelConfig& model, int ranks,
                                        std::vector<std::string>& notes) {
  const auto mesh = engine::mesh_from(config, model, ranks > 0 ? ranks : fewest_ranks(config));
  if (!mesh.ok()) return mesh.failure();
  const auto fitting = train::with_own_batch(config, *mesh);
  if (!fitting.ok()) return fitting.failure();
  notes.insert(notes.end(), fitting->notes.begin(), fitting->notes.end());
  const auto options = engine::options_from(fitting->config, model, *mesh, base::Rank{0});
  if (!options.ok()) return options.failure();
  return engine::global_batch(options->schedule, *mesh);
}

/// True if a source of tokens has no file under its name.
bool is_absent(const schema::WeightedText& source) {
  return !base::exists(source.text + ".bin") && !base::exists(source.text);
}

/// Opens token files as a start does.
base::Status check_data(const config::Config& config, const model::ModelConfig& model,
                        std::int64_t batch, Verdict& verdict) {
  const auto& keys = config.options();
  if (keys.data.train.empty()) {
    verdict.unchecked.emplace_back("the data (data.train names none)");
  }
  for (const auto split : {engine::Split::train, engine::Split::validation}) {
    const bool trains = split == engine::Split::train;
    const auto& sources = trains ? keys.data.train : keys.data.validation;
    if (sources.empty()) continue;
    const auto dataset = engine::open_dataset_alone(keys, split, model, data::FileCheck::whole);
    if (!dataset.ok()) {
      const auto& failure = dataset.failure();
      const bool absent = std::any_of(sources.begin(), sources.end(), is_absent);
      if (!absent || failure.code == base::ExitCode::usage) return failure;
      verdict.missing.emplace_back(failure.text);
    } else if (trains) {
      const auto steps = keys.train.steps;
      const auto drawn = static_cast<std::uint64_t>(steps * batch);
      verdict.exposure = data::text(data::exposure_of(*dataset, drawn), steps, batch);
      auto warning = data::repeats_in_batch(*dataset, batch);
      if (!warning.empty()) verdict.notes.push_back(std::move(warning));
    }
  }
  return {};
}

base::Status check_companions(const config::Config& config, Verdict& verdict) {
  const auto& keys = config.options();
  if (const auto status = train::check_tokenizer_is_there(config); !status.ok()) {
    verdict.missing.push_back(status.failure().text);
  }
  const auto& checkpoints = keys.checkpoint.directory;
  if (auto status = checkpoint::check_checkpoints(config::run_directory(config), checkpoints);
      !status.ok()) {
    return status;
  }
  if (auto status = check_save_interval(config); !status.ok()) return status;
  for (const auto& target : keys.track.to) {
    if (const auto parsed = track::parse_target(target); !parsed.ok()) return parsed.failure();
  }
  if (keys.checkpoint.key_file.empty()) return {};
  const auto key = checkpoint::read_key_file(keys.checkpoint.key_file);
  return key.ok() ? base::Status{} : key.failure();
}

}  // namespace

base::Result<Verdict> check_run(const config::Config& config, int ranks) {
  // Before its steps are looked for.
  if (auto status = train::check_run_directory(config); !status.ok()) return status.failure();
  const auto continuation = train::continued(config);
  if (!continuation.ok()) return continuation.failure();
  const auto& own = continuation->config;
  Verdict verdict{.notes = continuation->notes};
  if (const auto status = check_companions(own, verdict); !status.ok()) return status.failure();
  if (auto why = unknown_model(own); !why.empty()) {
    verdict.unchecked.push_back(std::move(why));
    return verdict;
  }
  const bool is_unknown =
      vocabulary_is_of_tokenizer(own) && !base::exists(own.options().data.tokenizer);
  const auto model =
      is_unknown ? huggingface::configured_model(own, some_vocabulary) : train::model_from(own);
  if (!model.ok()) return model.failure();
  const auto batch = check_layout(own, *model, ranks, verdict.notes);
  if (!batch.ok()) return batch.failure();
  if (is_unknown) {
    verdict.unchecked.push_back(
        format("the size of the vocabulary (there is no '{}' here)", own.options().data.tokenizer));
    return verdict;
  }
  if (verdict.missing.empty()) {
    const auto task = inference::read_sample_task(own, *model);
    if (!task.ok()) return task.failure();
  }
  const auto status = check_data(own, *model, *batch, verdict);
  return status.ok() ? base::Result<Verdict>(verdict) : status.failure();
}

base::Status check_model_and_layout(const config::Config& config, int ranks) {
  // The folder may be gone when the run has its own model, which takes reading its steps to know.
  const fs::path folder = config.options().model.from;
  if (!folder.empty() && !base::exists(folder / "config.json")) return {};
  const auto model = vocabulary_is_of_tokenizer(config)
                         ? huggingface::configured_model(config, some_vocabulary)
                         : train::model_from(config);
  std::vector<std::string> ignored;
  if (!model.ok()) return model.failure();
  const auto batch = check_layout(config, *model, ranks, ignored);
  return batch.ok() ? base::Status{} : batch.failure();
}

std::vector<std::string> replacement_texts(const std::vector<std::string>& files) {
  constexpr std::size_t most = 5;
  const std::vector<fs::path> paths(files.begin(), files.end());
  const auto replaced = config::replaced_values(paths);
  std::vector<std::string> texts;
  for (const auto& each : replaced) {
    if (texts.size() == most) break;
    texts.push_back(format("{}: {} = {} replaces {} of {}", each.second_origin.text(), each.key,
                           each.second, each.first, each.first_origin.text()));
  }
  if (replaced.size() > most) {
    texts.push_back(format("{} more keys are replaced so", replaced.size() - most));
  }
  if (!replaced.empty()) {
    texts.emplace_back(
        "files are laid over one another from left to right; check files that do not belong "
        "together one at a time");
  }
  return texts;
}

}  // namespace trireme::apps
