// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/model_keys.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/model/model_fields.hpp"
#include "trireme/model/parameters.hpp"

#include <algorithm>
#include <type_traits>

namespace trireme::model {
namespace {

using base::format;
using base::number_text;

template <typename Number>
std::string text_of(Number number) {
  if constexpr (std::is_floating_point_v<Number>) return number_text(number);
  return format("{}", number);
}

/// Sets keys that are `auto`; values that were given stay.
class Filling {
 public:
  explicit Filling(const config::Config& config) : config_(config) {}

  void set(const std::string& key, const std::string& text) {
    if (!config_.automatic(key)) return;
    config_ = base::value_or_throw(config_.with(key, text, config::Origin::program("auto")));
  }
  /// A visitor of fields that sets their keys, which begin with `prefix`.
  template <typename Model>
  auto setting(const std::string& prefix, const Model& model) {
    return [this, prefix, &model](const char* name, auto, auto member) {
      set(prefix + name, text_of(model.*member));
    };
  }
  const config::Config& config() const { return config_; }

 private:
  config::Config config_;
};

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
  for_each_size(to.setting("model.", model));
  for_each_number(model.family(), to.setting("model.", model));
  if (model.has_rotary()) {
    const auto& rope = model.rope_scaling;
    to.set("model.rope_scaling.rope_type", model::name(rope.kind));
    for_each_rope_number(rope.kind, to.setting("model.rope_scaling.", rope));
  }
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
