// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/config.hpp"

#include "trireme/base/json_text.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
using base::Json;

namespace {

/// A small config.json of a llama without rope settings, with some fields changed.
Json llama(const Json& changes) {
  Json json{{"model_type", "llama"},         {"hidden_size", 16},        {"intermediate_size", 24},
            {"num_hidden_layers", 2},        {"num_attention_heads", 4}, {"num_key_value_heads", 2},
            {"max_position_embeddings", 64}, {"vocab_size", 50}};
  json.update(changes);
  return json;
}

std::string refusal(const Json& json) {
  const auto read = huggingface::parse_config(json, "DIR/config.json");
  if (read) return "accepted as " + base::json_text(huggingface::config_json(*read));
  CHECK(read.failure().text.starts_with("DIR/config.json: "));
  return read.failure().text;
}

model::ModelConfig model_of(const Json& json) {
  return huggingface::parse_config(json, "DIR/config.json").value();
}

const Json llama3_rope{
    {"rope_type", "llama3"}, {"factor", 8.0}, {"low_freq_factor", 1.0}, {"high_freq_factor", 4.0}};

Json llama3_with(const Json& changes) {
  auto rope = llama3_rope;
  rope.update(changes);
  return rope;
}

}  // namespace

TEST_CASE("a config.json that was written reads back as the same model") {
  for (const auto& config : {gpt2_124m(), llama3_8b(), qwen3_06b()}) {
    const auto json = huggingface::config_json(config);
    const auto read = huggingface::parse_config(json).value();
    CHECK(huggingface::config_json(read) == json);
    CHECK(read.norm_eps == config.norm_eps);
    CHECK(read.rope_theta == config.rope_theta);
    CHECK(model::parameter_count(read) == model::parameter_count(config));
  }
}

TEST_CASE("rope settings are read from where either version of transformers writes them") {
  auto json = huggingface::config_json(llama3_8b());
  auto old = json;
  old.erase("rope_parameters");
  auto recent = json;
  recent.erase("rope_scaling");
  recent.erase("rope_theta");
  for (const auto& form : {old, recent}) {
    const auto read = huggingface::parse_config(form).value();
    CHECK(read.rope_theta == 500000.0);
    CHECK(read.rope_scaling.kind == model::RopeScalingKind::llama3);
    CHECK(read.rope_scaling.factor == 8.0);
  }
}

TEST_CASE("what the layers do not compute is refused by name") {
  const std::pair<const char*, base::Json> changes[] = {
      {"hidden_act", "gelu"},  {"attention_bias", true},      {"mlp_bias", true},
      {"model_type", "mamba"}, {"num_attention_heads", "32"}, {"hidden_size", 0},
  };
  for (const auto& [key, value] : changes) {
    auto json = huggingface::config_json(llama3_8b());
    json[key] = value;
    const auto read = huggingface::parse_config(json);
    CAPTURE(key);
    REQUIRE_FALSE(read.ok());
    CHECK(read.failure().text.find(key) != std::string::npos);
  }
  auto json = huggingface::config_json(llama3_8b());
  json["rope_parameters"]["rope_type"] = "yarn";
  CHECK(huggingface::parse_config(json).failure().text.find("yarn") != std::string::npos);
}

TEST_CASE("a scaling that lacks what it needs is refused by the name of the field") {
  using Catch::Contains;
  for (const char* place : {"rope_scaling", "rope_parameters"}) {
    for (const char* field : {"factor", "low_freq_factor", "high_freq_factor"}) {
      auto rope = llama3_rope;
      rope.erase(field);
      CHECK_THAT(refusal(llama({{place, rope}})), Contains(place) && Contains(field));
      CHECK_THAT(refusal(llama({{place, llama3_with({{field, nullptr}})}})), Contains(field));
      CHECK_THAT(refusal(llama({{place, llama3_with({{field, 0}})}})), Contains(field));
      CHECK_THAT(refusal(llama({{place, llama3_with({{field, "8"}})}})), Contains(field));
    }
    CHECK_THAT(refusal(llama({{place, {{"rope_type", "linear"}}}})), Contains("factor"));
    CHECK_THAT(refusal(llama({{place, {{"rope_type", nullptr}, {"factor", 2}}}})),
               Contains("rope_type"));
    CHECK_THAT(refusal(llama({{place, {{"type", nullptr}, {"factor", 2}}}})), Contains("type"));
    CHECK_THAT(refusal(llama(
                   {{place, {{"rope_type", "linear"}, {"factor", 2}, {"rope_theta", nullptr}}}})),
               Contains("rope_theta = null is no value"));
    CHECK_THAT(refusal(llama({{"rope_theta", 7}, {place, {{"rope_theta", nullptr}}}})),
               Contains("rope_theta = null is no value"));
    CHECK_THAT(refusal(llama({{place, {{"rope_type", "yarn"}, {"factor", 2}}}})), Contains("yarn"));
    CHECK_THAT(refusal(llama({{place, "linear"}})), Contains("not an object"));
    CHECK_THAT(refusal(llama({{place, {{"full_attention", {{"rope_type", "default"}}}}}})),
               Contains("full_attention"));
    CHECK_THAT(refusal(llama({{place, llama3_with({{"partial_rotary_factor", 0.5}})}})),
               Contains("partial_rotary_factor"));
    CHECK_THAT(refusal(llama({{place, llama3_with({{"high_freq_factor", 1.0}})}})),
               Contains("high_freq_factor"));
    CHECK_THAT(
        refusal(llama({{place, llama3_with({{"original_max_position_embeddings", nullptr}})}})),
        Contains("original_max_position_embeddings"));
  }
}

TEST_CASE(
    "numbers of a scaling that its kind does not know are named, and refused without a kind") {
  using Catch::Contains;
  for (const std::string place : {"rope_scaling", "rope_parameters"}) {
    auto rope = llama3_with({{"original_max_position_embeddings", 8192}});
    rope.erase("rope_type");
    CHECK_THAT(refusal(llama({{place, rope}})),
               Contains(place + ": factor = 8.0, low_freq_factor = 1.0, high_freq_factor = 4.0, "
                                "original_max_position_embeddings = 8192 without rope_type ("));
    CHECK_THAT(refusal(llama({{place, {{"rope_theta", 7.0}, {"factor", 4}}}})),
               Contains("factor = 4 without rope_type ("));
    const auto warnings = [&](const Json& settings) {
      std::vector<std::string> said;
      CHECK(huggingface::parse_config(llama({{place, settings}}), "c", &said).ok());
      std::string text;
      for (const auto& each : said) text += each + "\n";
      return text;
    };
    CHECK(warnings({{"rope_type", "default"}, {"factor", 4}}) ==
          "c: " + place + ": no effect has factor = 4 (rope_type = default does not know it)\n");
    CHECK(warnings({{"type", "linear"}, {"factor", 4}, {"low_freq_factor", 1}}) ==
          "c: " + place +
              ": no effect has low_freq_factor = 1 (rope_type = linear does not know it)\n");
    CHECK(warnings({{"rope_type", "default"}, {"factor", nullptr}}).empty());
    CHECK(warnings({{"type", "linear"}, {"factor", 4}}).empty());
    CHECK(warnings({{"rope_theta", 7.0}}).empty());
    CHECK(warnings(llama3_with({{"original_max_position_embeddings", 16}})).empty());
  }
  std::vector<std::string> said;
  CHECK(huggingface::parse_config(llama({{"original_max_position_embeddings", 16}}), "c", &said)
            .ok());
  REQUIRE(said.size() == 1);
  CHECK_THAT(said[0], Contains("no effect has original_max_position_embeddings = 16"));
}

TEST_CASE("the original context of a llama3 scaling is the longest one where none is given") {
  const auto original = [](const Json& changes) {
    return model_of(llama(changes)).rope_scaling.original_max_position_embeddings;
  };
  CHECK(original({{"rope_scaling", llama3_rope}}) == 64);
  CHECK(original({{"rope_scaling", llama3_rope}, {"original_max_position_embeddings", 16}}) == 16);
  const auto with_16 = llama3_with({{"original_max_position_embeddings", 16}});
  CHECK(original({{"rope_scaling", with_16}}) == 16);
  CHECK(original({{"rope_scaling", with_16}, {"original_max_position_embeddings", 16}}) == 16);
  CHECK_THAT(refusal(llama({{"rope_scaling", with_16}, {"original_max_position_embeddings", 8}})),
             Catch::Contains("original_max_position_embeddings"));
}

TEST_CASE("one setting in two places is read where both agree, and else refused") {
  using Catch::Contains;
  const Json linear{{"rope_type", "linear"}, {"factor", 2.0}};
  const auto with_theta = [](Json rope, double theta) {
    rope["rope_theta"] = theta;
    return rope;
  };
  CHECK(model_of(llama({{"rope_theta", 7.0}, {"rope_scaling", linear}})).rope_theta == 7.0);
  CHECK(model_of(llama({{"rope_theta", 7}, {"rope_parameters", with_theta(linear, 7.0)}}))
            .rope_theta == 7.0);
  CHECK(model_of(llama({{"rope_theta", nullptr}, {"rope_parameters", with_theta(linear, 7.0)}}))
            .rope_theta == 7.0);
  CHECK(model_of(llama({{"rope_scaling", Json::object()}, {"rope_parameters", linear}}))
            .rope_scaling.factor == 2.0);
  CHECK(model_of(llama({{"rope_scaling", linear}, {"rope_parameters", with_theta(linear, 10000)}}))
            .rope_scaling.factor == 2.0);
  CHECK(
      model_of(llama({{"rope_scaling", {{"type", "linear"}, {"factor", 2}}}})).rope_scaling.kind ==
      model::RopeScalingKind::linear);
  CHECK_THAT(refusal(llama({{"rope_theta", 7.0}, {"rope_parameters", with_theta(linear, 8.0)}})),
             Contains("rope_theta = 7.0") && Contains("rope_parameters"));
  CHECK_THAT(refusal(llama({{"rope_theta", nullptr}})), Contains("rope_theta"));
  CHECK_THAT(
      refusal(llama({{"rope_scaling", linear}, {"rope_parameters", {{"rope_type", "default"}}}})),
      Contains("rope_scaling and rope_parameters"));
  CHECK_THAT(refusal(llama({{"rope_scaling", linear}, {"rope_parameters", with_theta(linear, 7)}})),
             Contains("rope_scaling and rope_parameters"));
  CHECK_THAT(refusal(llama({{"rope_scaling",
                             {{"type", "linear"}, {"rope_type", "default"}, {"factor", 2}}}})),
             Contains("rope_type") && Contains("type"));
  const Json gpt2{{"model_type", "gpt2"}, {"hidden_size", 16}, {"n_head", 2},
                  {"vocab_size", 9},      {"n_ctx", 1024},     {"num_hidden_layers", 1}};
  CHECK(model_of(gpt2).hidden_size == 16);
  CHECK(model_of(gpt2).num_hidden_layers == 1);
  for (const auto& [key, value] : {std::pair{"n_embd", 32},
                                   {"num_attention_heads", 4},
                                   {"n_layer", 2},
                                   {"max_position_embeddings", 8},
                                   {"n_ctx", 8}}) {
    auto json = gpt2;
    json["n_positions"] = 1024;
    json[key] = value;
    CHECK_THAT(refusal(json), Contains(key));
  }
}

TEST_CASE("errors name file, key and value, and 0 is a value") {
  using Catch::Contains;
  CHECK_THAT(refusal(llama({{"num_key_value_heads", 8}})),
             Contains("DIR/config.json: num_key_value_heads = 8 does not divide "
                      "num_attention_heads = 4"));
  CHECK_THAT(refusal(llama({{"num_key_value_heads", 3}})), Contains("num_key_value_heads = 3"));
  for (const char* key :
       {"num_key_value_heads", "num_attention_heads", "hidden_size", "head_dim",
        "intermediate_size", "num_hidden_layers", "vocab_size", "max_position_embeddings"}) {
    CAPTURE(key);
    for (const Json& value : {Json(0), Json(-1), Json(1.5), Json("4"), Json(true),
                              Json(std::int64_t{1} << 40), Json(18446744073709551615U)}) {
      CHECK_THAT(refusal(llama({{key, value}})),
                 Contains("DIR/config.json: " + std::string(key) + " = " + base::json_text(value)));
    }
  }
  CHECK_THAT(refusal(llama({{"hidden_size", 18}})),
             Contains("hidden_size = 18 is not a multiple of num_attention_heads = 4"));
  CHECK_THAT(refusal(llama({{"head_dim", 3}})), Contains("head_dim = 3 is odd"));
  CHECK_THAT(refusal({{"model_type", "gpt2"}, {"n_embd", 18}, {"n_head", 4}}),
             Contains("n_embd = 18 is not a multiple of n_head = 4"));
  CHECK_THAT(refusal(llama({{"rms_norm_eps", -1.0}})), Contains("rms_norm_eps = -1.0"));
  CHECK_THAT(refusal(llama({{"hidden_size", nullptr}})), Contains("hidden_size = null"));
  CHECK_THAT(refusal(llama({{"tie_word_embeddings", nullptr}})),
             Contains("tie_word_embeddings = null"));
  CHECK(model_of(llama({{"head_dim", nullptr}})).head_dim == 4);
  CHECK(model_of(llama({{"num_key_value_heads", nullptr}})).num_key_value_heads == 4);
}
