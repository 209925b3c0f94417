// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/model_fields.hpp"

#include "trireme/base/error.hpp"
#include "trireme/model/model_keys.hpp"

#include <catch2/catch.hpp>

#include <map>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

using namespace trireme;
using model::ModelConfig;

namespace {

/// Values of keys, no two alike but where a family wants it.
std::map<std::string, std::string> values_of(const model::Family& family) {
  std::map<std::string, std::string> values{
      {"vocab_size", "101"},
      {"hidden_size", "64"},
      {"intermediate_size", "96"},
      {"num_hidden_layers", "3"},
      {"num_attention_heads", "4"},
      {"num_key_value_heads", "2"},
      {"head_dim", "16"},
      {"max_position_embeddings", "128"},
      {"tie_word_embeddings", family.ties_embeddings ? "false" : "true"},
      {"dropout", "0.25"},
      {"initializer_range", "0.125"}};
  if (!family.free_heads) values["num_key_value_heads"] = "4";
  values[family.norm == model::NormKind::layer ? "layer_norm_eps" : "rms_norm_eps"] = "2e-5";
  if (family.positions == model::PositionKind::rotary) {
    values.insert({{"rope_theta", "5000"},
                   {"rope_scaling.factor", "2.5"},
                   {"rope_scaling.low_freq_factor", "1.5"},
                   {"rope_scaling.high_freq_factor", "4.5"},
                   {"rope_scaling.original_max_position_embeddings", "32"}});
  }
  return values;
}

config::Config config_of(const model::Family& family,
                         const std::map<std::string, std::string>& values) {
  config::Config config;
  const auto set = [&config](const std::string& key, const std::string& text) {
    config = base::value_or_throw(config.with(key, text, config::Origin::program("test")));
  };
  set("model.architecture", family.name);
  if (values.count("rope_scaling.factor") > 0) set("model.rope_scaling.rope_type", "llama3");
  for (const auto& [name, text] : values) set("model." + name, text);
  return config;
}

/// Calls visit(name, key's value, model's value) for every field of the family.
template <typename Visit>
void for_each_value(const config::ModelOptions& keys, const ModelConfig& config,
                    const Visit& visit) {
  const auto each = [&visit](const std::string& prefix, const auto& given, const auto& held) {
    return [&visit, prefix, &given, &held](const char* name, auto key, auto member) {
      visit(prefix + name, given.*key, held.*member);
    };
  };
  model::for_each_size(each("", keys, config));
  model::for_each_number(config.family(), each("", keys, config));
  if (!config.has_rotary()) return;
  model::for_each_rope_number(config.rope_scaling.kind,
                              each("rope_scaling.", keys.rope_scaling, config.rope_scaling));
}

template <typename Number>
Number number_in(const std::string& text) {
  if constexpr (std::is_same_v<Number, bool>) return text == "true";
  return static_cast<Number>(std::stod(text));
}

}  // namespace

TEST_CASE("every key of a model is a field, of one family or another") {
  std::set<std::string> keys;
  for (const auto& key : schema::keys()) {
    if (key.section == "model") keys.insert(std::string(key.name));
  }
  std::set<std::string> fields{"from", "architecture", "rope_scaling.rope_type"};
  for (const auto* family : model::families()) {
    ModelConfig config;
    config.architecture = family->architecture;
    config.rope_scaling.kind = model::RopeScalingKind::llama3;
    for_each_value({}, config,
                   [&](const std::string& name, const auto&, const auto&) { fields.insert(name); });
  }
  CHECK(fields == keys);
}

TEST_CASE("a model has the values of its keys, and its keys make it again") {
  for (const auto* family : model::families()) {
    CAPTURE(family->name);
    const auto values = values_of(*family);
    const auto config = config_of(*family, values);
    const auto made = base::value_or_throw(model::from_config(config, std::nullopt));
    std::set<std::string> seen;
    for_each_value(config.options().model, made,
                   [&](const std::string& name, const auto& key, const auto& held) {
                     CAPTURE(name);
                     seen.insert(name);
                     REQUIRE(values.count(name) == 1);
                     using Number = std::decay_t<decltype(held)>;
                     const auto wanted = number_in<Number>(values.at(name));
                     CHECK(held == wanted);
                     CHECK(static_cast<Number>(key.value()) == wanted);
                   });
    CHECK(seen.size() == values.size());

    const auto keys = model::with_model(config::Config(), made);
    for (const auto& [name, text] : values) CHECK(keys.shown("model." + name) == text);
    const auto again = base::value_or_throw(model::from_config(keys, std::nullopt));
    CHECK(again.architecture == made.architecture);
    CHECK(model::differences(again, made).empty());
    CHECK(model::contradictions(config, again).empty());
  }
}

TEST_CASE("a scaling has the numbers of its kind alone") {
  const auto names = [](model::RopeScalingKind kind) {
    std::vector<std::string> all;
    model::for_each_rope_number(kind, [&](const char* name, auto, auto) { all.push_back(name); });
    return all;
  };
  CHECK(names(model::RopeScalingKind::none).empty());
  CHECK(names(model::RopeScalingKind::linear) == std::vector<std::string>{"factor"});
  CHECK(names(model::RopeScalingKind::llama3) ==
        std::vector<std::string>{"factor", "low_freq_factor", "high_freq_factor",
                                 "original_max_position_embeddings"});
}
