// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/config.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;

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
