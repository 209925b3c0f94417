// SPDX-License-Identifier: Apache-2.0
#include "train/start/resolved_values.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/path.hpp"
#include "trireme/model/model_keys.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/schema/value.hpp"

namespace trireme::train {
namespace {

using base::format;
using base::number_text;

/// Replaces `auto` by values; values that were given stay.
class Resolution {
 public:
  explicit Resolution(const config::Config& config) : config_(config) {}

  void set(const char* key, const std::string& text, const char* origin = "auto") {
    config_ = base::value_or_throw(config_.with(key, text, config::Origin::program(origin)));
  }
  void set_auto(const char* key, const std::string& text) {
    if (config_.automatic(key)) set(key, text);
  }
  void set_auto(const char* key, std::int64_t value) { set_auto(key, format("{}", value)); }
  void set_text(const char* key, const std::string& value) {
    set(key, schema::value_text(*schema::find_key(key), value));
  }
  /// Token files are found from any working directory. A name that no value can hold (the working
  /// directory has a line break) stays as it was given.
  void set_absolute(const char* key) {
    auto sources = std::get<std::vector<schema::WeightedText>>(config_.value(key));
    for (auto& source : sources) {
      source.text = base::absolute(source.text).lexically_normal().string();
    }
    const auto text = schema::value_text(*schema::find_key(key), sources);
    const auto changed = config_.with(key, text, config_.origin(key));
    if (changed.ok() && changed->value(key) == schema::Value(sources)) config_ = *changed;
  }
  /// A path is found from any working directory; so is the run when it is started from its own
  /// configuration. URLs, and names that a value cannot hold, stay as they were given.
  void set_absolute_path(const char* key) {
    if (config_.automatic(key)) return;
    const auto& given = std::get<std::string>(config_.value(key));
    const bool is_url = given.find("://") != std::string::npos;
    if (given.empty() || given == "none" || is_url) return;
    const auto path = base::absolute(given).lexically_normal().string();
    const auto text = schema::value_text(*schema::find_key(key), path);
    const auto changed = config_.with(key, text, config_.origin(key));
    if (changed.ok() && changed->value(key) == schema::Value(path)) config_ = *changed;
  }
  const config::Config& config() const { return config_; }

 private:
  config::Config config_;
};

constexpr const char* token_files[] = {"data.train", "data.validation"};
constexpr const char* paths[] = {
    "data.tokenizer",  "train.sample_prompts",       "checkpoint.directory", "checkpoint.key_file",
    "checkpoint.load", "checkpoint.local_directory", "run.directory",        "plan.machine"};

}  // namespace

config::Config with_values(const config::Config& config, const model::ModelConfig& model,
                           const engine::ScheduleOptions& schedule, const layout::Mesh& mesh) {
  Resolution to(model::with_model(config, model));
  if (!config.options().model.from.empty()) {
    to.set("model.from", "", "read at start; its values stand here");
  }
  to.set_auto("parallel.data", mesh.degree(layout::Axis::data));
  to.set_auto("train.global_batch", engine::global_batch(schedule, mesh));
  to.set_auto("data.seed", config.options().data_seed());
  if (config.options().optimizer.curve == config::LearningRateCurve::wsd) {
    to.set_auto("optimizer.decay_steps", config.options().decay_steps());
  }
  const auto& optimizer = config.options().optimizer;
  const auto& rule = optim::traits(optimizer.name);
  if (rule.momentum) to.set_auto("optimizer.momentum", number_text(*rule.momentum));
  if (rule.max_side) to.set_auto("optimizer.max_side", *rule.max_side);
  if (rule.updates_matrices) {
    to.set_auto("optimizer.adamw_learning_rate", number_text(optimizer.learning_rate));
  }
  if (config.automatic("run.directory")) {
    to.set_text("run.directory", config::run_directory(config).string());
  }
  for (const auto* key : token_files) to.set_absolute(key);
  for (const auto* key : paths) to.set_absolute_path(key);
  return to.config();
}

}  // namespace trireme::train
