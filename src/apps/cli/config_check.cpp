// SPDX-License-Identifier: Apache-2.0
#include "apps/cli/config_check.hpp"

#include "trireme/base/format.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/engine/options.hpp"
#include "trireme/huggingface/config.hpp"
#include "trireme/train/trainer.hpp"

#include <algorithm>
#include <filesystem>

namespace trireme::apps {
namespace {

namespace fs = std::filesystem;
using base::format;

/// Vocabulary size for a model whose tokenizer does not exist yet.
constexpr std::int64_t some_vocabulary = 1 << 16;

/// Smallest number of ranks for the degrees; products above the range are left to the mesh.
int fewest_ranks(const config::ParallelOptions& degrees) {
  constexpr std::int64_t most = 1 << 24;
  auto product = std::min(most, std::int64_t{degrees.tensor} * degrees.pipeline);
  product = std::min(most, product * degrees.data.value_or(1));
  return static_cast<int>(product);
}

}  // namespace

base::Result<std::vector<std::string>> check_run(const config::Config& config) {
  const auto& keys = config.options();
  const auto& folder = keys.model.from;
  const bool known_to_run = fs::exists(config::run_directory(config) / "model.json");
  if (!keys.model.architecture && folder.empty() && !known_to_run) {
    return std::vector<std::string>{
        "the model and how it fits its layout (neither model.architecture nor model.from is "
        "given)"};
  }
  if (!folder.empty() && !fs::exists(fs::path(folder) / "config.json")) {
    return std::vector<std::string>{format(
        "the model and how it fits its layout (there is no '{}' here)", folder + "/config.json")};
  }
  std::vector<std::string> unknown;
  const auto& tokenizer = keys.data.tokenizer;
  const bool tokenizer_is_missing = !keys.model.vocab_size && folder.empty() && !known_to_run &&
                                    !tokenizer.empty() && !fs::exists(tokenizer);
  if (tokenizer_is_missing) {
    unknown.push_back(format("the size of the vocabulary (there is no '{}' here)", tokenizer));
  }
  const auto model = tokenizer_is_missing ? huggingface::configured_model(config, some_vocabulary)
                                          : train::model_from(config);
  if (!model.ok()) return model.failure();
  const auto mesh = engine::mesh_from(config, *model, fewest_ranks(keys.parallel));
  if (!mesh.ok()) return mesh.failure();
  const auto options = engine::options_from(config, *model, *mesh, base::Rank{0});
  if (!options.ok()) return options.failure();
  return unknown;
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
