// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/model_keys.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/model/parameters.hpp"

#include <algorithm>

namespace trireme::model {
namespace {

using base::format;
using base::number_text;

/// Sets keys that are `auto`; values that were given stay.
class Filling {
 public:
  explicit Filling(const config::Config& config) : config_(config) {}

  void set(const char* key, const std::string& text) {
    if (!config_.automatic(key)) return;
    config_ = base::value_or_throw(config_.with(key, text, config::Origin::program("auto")));
  }
  void set(const char* key, std::int64_t value) { set(key, format("{}", value)); }
  const config::Config& config() const { return config_; }

 private:
  config::Config config_;
};

void set_rope(Filling& to, const ModelConfig& model) {
  const auto& rope = model.rope_scaling;
  to.set("model.rope_theta", number_text(model.rope_theta));
  to.set("model.rope_scaling.rope_type", rope.kind == RopeScalingKind::llama3   ? "llama3"
                                         : rope.kind == RopeScalingKind::linear ? "linear"
                                                                                : "default");
  if (rope.kind == RopeScalingKind::none) return;
  to.set("model.rope_scaling.factor", number_text(rope.factor));
  if (rope.kind != RopeScalingKind::llama3) return;
  to.set("model.rope_scaling.low_freq_factor", number_text(rope.low_freq_factor));
  to.set("model.rope_scaling.high_freq_factor", number_text(rope.high_freq_factor));
  to.set("model.rope_scaling.original_max_position_embeddings",
         rope.original_max_position_embeddings);
}

/// True for keys that stored weights depend on.
bool belongs_to_weights(const schema::Key& key, const ModelConfig& trained) {
  if (key.section != "model" || key.name == "from") return false;
  // Without a table of positions their number is a limit alone.
  if (key.name == "max_position_embeddings" && trained.has_rotary()) return false;
  return key.concern == schema::Concern::model;
}

/// Models keep some numbers as floats.
bool are_equal(const schema::Value& one, const schema::Value& other) {
  const auto* const first = std::get_if<double>(&one);
  const auto* const second = std::get_if<double>(&other);
  if (first == nullptr || second == nullptr) return one == other;
  return static_cast<float>(*first) == static_cast<float>(*second);
}

/// "model.rope_theta = 500 (--set)": the key, or where model.from has its value.
std::string cited(const config::Config& config, const config::Config& filled,
                  const std::string& name) {
  if (!config.automatic(name)) return config.cited(name);
  return format("{} = {} of {}", name, filled.shown(name), config.cited("model.from"));
}

}  // namespace

config::Config with_model(const config::Config& config, const ModelConfig& model) {
  Filling to(config);
  to.set("model.architecture", name(model.architecture));
  to.set("model.vocab_size", model.vocab_size);
  to.set("model.hidden_size", model.hidden_size);
  to.set("model.intermediate_size", model.intermediate_size);
  to.set("model.num_hidden_layers", model.num_hidden_layers);
  to.set("model.num_attention_heads", model.num_attention_heads);
  to.set("model.num_key_value_heads", model.num_key_value_heads);
  to.set("model.head_dim", model.head_dim);
  to.set("model.max_position_embeddings", model.max_position_embeddings);
  const bool layer_norm = model.family().norm == NormKind::layer;
  to.set(layer_norm ? "model.layer_norm_eps" : "model.rms_norm_eps", number_text(model.norm_eps));
  to.set("model.tie_word_embeddings", model.tie_word_embeddings ? "true" : "false");
  to.set("model.dropout", number_text(model.dropout));
  to.set("model.initializer_range", number_text(model.initializer_range));
  if (model.has_rotary()) set_rope(to, model);
  return to.config();
}

std::vector<std::string> contradictions(const config::Config& config, const ModelConfig& trained,
                                        const std::optional<ModelConfig>& from) {
  const auto own = with_model(config::Config(), trained);
  const auto filled = from ? with_model(config, *from) : config;
  std::vector<std::string> texts;
  for (const auto& key : schema::keys()) {
    const auto name = key.full_name();
    // Keys that the model leaves at `auto` say nothing of it.
    if (!belongs_to_weights(key, trained) || own.automatic(name) || filled.automatic(name)) {
      continue;
    }
    if (are_equal(filled.value(name), own.value(name))) continue;
    texts.push_back(format("{} instead of {}", cited(config, filled, name), own.shown(name)));
  }
  return texts;
}

config::Config with_trained_model(const config::Config& config, const ModelConfig& trained) {
  const auto own = with_model(config::Config(), trained);
  auto with = with_model(config, trained);
  const auto set = [&with](const std::string& name, const std::string& text,
                           const config::Origin& origin) {
    with = base::value_or_throw(with.with(name, text, origin));
  };
  for (const auto& key : schema::keys()) {
    const auto name = key.full_name();
    if (!belongs_to_weights(key, trained) || with.value(name) == own.value(name)) continue;
    set(name, own.shown(name), own.origin(name));
  }
  if (!config.options().model.from.empty()) {
    set("model.from", "", config::Origin::program("read at start; its values stand here"));
  }
  return with;
}

std::vector<std::string> differences(const ModelConfig& model, const ModelConfig& trained) {
  const auto own = with_model(config::Config(), model);
  std::vector<std::string> texts;
  for (const auto& found : config::diff(with_model(config::Config(), trained), own)) {
    if (!belongs_to_weights(*schema::find_key(found.key), trained)) continue;
    texts.push_back(format("{} = {} instead of {}", found.key, found.second, found.first));
  }
  return texts;
}

bool has_same_tensors(const ModelConfig& one, const ModelConfig& other) {
  const auto first = parameters(one);
  const auto second = parameters(other);
  return std::equal(first.begin(), first.end(), second.begin(), second.end(),
                    [](const auto& a, const auto& b) {
                      return a.tensor.name == b.tensor.name && a.tensor.shape == b.tensor.shape;
                    });
}

}  // namespace trireme::model
