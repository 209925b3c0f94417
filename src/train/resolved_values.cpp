// SPDX-License-Identifier: Apache-2.0
#include "resolved_values.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/optim/optimizer.hpp"
#include "trireme/schema/value.hpp"

#include <filesystem>

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
      source.text = std::filesystem::absolute(source.text).lexically_normal().string();
    }
    const auto text = schema::value_text(*schema::find_key(key), sources);
    const auto changed = config_.with(key, text, config_.origin(key));
    if (changed.ok() && changed->value(key) == schema::Value(sources)) config_ = *changed;
  }
  const config::Config& config() const { return config_; }

 private:
  config::Config config_;
};

void set_rope(Resolution& to, const model::ModelConfig& model) {
  using model::RopeScalingKind;
  const auto& rope = model.rope_scaling;
  to.set_auto("model.rope_theta", number_text(model.rope_theta));
  to.set_auto("model.rope_scaling.rope_type", rope.kind == RopeScalingKind::llama3   ? "llama3"
                                              : rope.kind == RopeScalingKind::linear ? "linear"
                                                                                     : "default");
  if (rope.kind == RopeScalingKind::none) return;
  to.set_auto("model.rope_scaling.factor", number_text(rope.factor));
  if (rope.kind != RopeScalingKind::llama3) return;
  to.set_auto("model.rope_scaling.low_freq_factor", number_text(rope.low_freq_factor));
  to.set_auto("model.rope_scaling.high_freq_factor", number_text(rope.high_freq_factor));
  to.set_auto("model.rope_scaling.original_max_position_embeddings",
              rope.original_max_position_embeddings);
}

void set_model(Resolution& to, const model::ModelConfig& model) {
  to.set_auto("model.architecture", model::name(model.architecture));
  to.set_auto("model.vocab_size", model.vocab_size);
  to.set_auto("model.hidden_size", model.hidden_size);
  to.set_auto("model.intermediate_size", model.intermediate_size);
  to.set_auto("model.num_hidden_layers", model.num_hidden_layers);
  to.set_auto("model.num_attention_heads", model.num_attention_heads);
  to.set_auto("model.num_key_value_heads", model.num_key_value_heads);
  to.set_auto("model.head_dim", model.head_dim);
  to.set_auto("model.max_position_embeddings", model.max_position_embeddings);
  const bool gpt2 = model.architecture == model::Architecture::gpt2;
  to.set_auto(gpt2 ? "model.layer_norm_eps" : "model.rms_norm_eps", number_text(model.norm_eps));
  to.set_auto("model.tie_word_embeddings", model.tie_word_embeddings ? "true" : "false");
  to.set_auto("model.dropout", number_text(model.dropout));
  to.set_auto("model.initializer_range", number_text(model.initializer_range));
  if (model.has_rotary()) set_rope(to, model);
}

}  // namespace

config::Config with_model(const config::Config& config, const model::ModelConfig& model) {
  Resolution to(config);
  set_model(to, model);
  return to.config();
}

config::Config with_values(const config::Config& config, const engine::EngineOptions& options) {
  Resolution to(config);
  set_model(to, options.model);
  if (!config.options().model.from.empty()) {
    to.set("model.from", "", "read at start; its values stand here");
  }
  const std::int64_t data = options.mesh.degree(layout::Axis::data);
  to.set_auto("parallel.data", data);
  to.set_auto("train.global_batch", options.micro_batch * options.micro_batches * data);
  to.set_auto("data.seed", config.options().data_seed());
  if (config.options().optimizer.curve == config::LearningRateCurve::wsd) {
    to.set_auto("optimizer.decay_steps", config.options().decay_steps());
  }
  const auto& optimizer = config.options().optimizer;
  const bool has_momentum =
      optimizer.name == config::UpdateRule::sgd || optimizer.name == config::UpdateRule::muon;
  if (has_momentum) {
    to.set_auto("optimizer.momentum", number_text(optim::default_momentum(optimizer.name)));
  }
  if (optim::has_owner_states(optimizer.name)) {
    to.set_auto("optimizer.max_side", optim::default_max_side(optimizer.name));
  }
  if (optim::has_matrix_rule(optimizer.name)) {
    to.set_auto("optimizer.adamw_learning_rate", number_text(optimizer.learning_rate));
  }
  if (config.automatic("run.directory")) {
    to.set_text("run.directory", config::run_directory(config).string());
  }
  for (const auto* key : {"data.train", "data.validation"}) to.set_absolute(key);
  return to.config();
}

}  // namespace trireme::train
