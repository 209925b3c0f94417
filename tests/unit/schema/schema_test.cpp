// SPDX-License-Identifier: Apache-2.0
#include "trireme/schema/schema.hpp"

#include "trireme/base/file.hpp"
#include "trireme/schema/reference.hpp"
#include "trireme/schema/value.hpp"

#include <catch2/catch.hpp>

#include <set>
#include <sstream>

using namespace trireme::schema;
namespace base = trireme::base;

TEST_CASE("every key is complete: documented, with a default of its own type, in a known section") {
  std::set<std::string_view> section_names;
  for (const auto& section : sections()) section_names.insert(section.name);
  std::set<std::string> names;
  std::set<std::string> variables;
  for (const auto& key : keys()) {
    INFO(key.full_name());
    CHECK(section_names.count(key.section) == 1);
    CHECK(names.insert(key.full_name()).second);
    CHECK(variables.insert(key.environment_name()).second);
    CHECK(key.documentation.size() > 10);
    CHECK(key.documentation.ends_with('.'));
    CHECK((key.type == Type::choice) == !key.choices.empty());
    CHECK(parse_value(key, key.default_text).ok());
    const auto value = parse_value(key, key.default_text).value();
    CHECK(value_text(key, value) == key.default_text);
    CHECK_FALSE(permitted_text(key).empty());
  }
}

TEST_CASE("keys of one section are neighbours, in the order of the sections") {
  std::size_t section = 0;
  for (const auto& key : keys()) {
    while (section < sections().size() && sections()[section].name != key.section) ++section;
    INFO(key.full_name());
    REQUIRE(section < sections().size());
  }
}

TEST_CASE("every key that the interface promises exists") {
  for (const auto* name : {"model.architecture",
                           "model.from",
                           "model.vocab_size",
                           "model.hidden_size",
                           "model.intermediate_size",
                           "model.num_hidden_layers",
                           "model.num_attention_heads",
                           "model.num_key_value_heads",
                           "model.head_dim",
                           "model.max_position_embeddings",
                           "model.rope_theta",
                           "model.rope_scaling.rope_type",
                           "model.rope_scaling.factor",
                           "model.rope_scaling.low_freq_factor",
                           "model.rope_scaling.high_freq_factor",
                           "model.rope_scaling.original_max_position_embeddings",
                           "model.rms_norm_eps",
                           "model.layer_norm_eps",
                           "model.tie_word_embeddings",
                           "model.dropout",
                           "model.initializer_range",
                           "parallel.tensor",
                           "parallel.pipeline",
                           "parallel.data",
                           "parallel.sequence",
                           "parallel.schedule",
                           "parallel.virtual_stages",
                           "parallel.stage_layers",
                           "parallel.zero_level",
                           "train.steps",
                           "train.sequence_length",
                           "train.micro_batch",
                           "train.global_batch",
                           "train.seed",
                           "train.activation_checkpointing",
                           "train.log_every",
                           "train.eval_every",
                           "train.eval_batches",
                           "optimizer.name",
                           "optimizer.learning_rate",
                           "optimizer.min_learning_rate",
                           "optimizer.curve",
                           "optimizer.warmup_steps",
                           "optimizer.beta1",
                           "optimizer.beta2",
                           "optimizer.eps",
                           "optimizer.weight_decay",
                           "optimizer.clip_norm",
                           "numerics.precision",
                           "numerics.backend",
                           "numerics.deterministic",
                           "data.train",
                           "data.validation",
                           "data.tokenizer",
                           "data.shuffle",
                           "checkpoint.every_steps",
                           "checkpoint.every_minutes",
                           "checkpoint.keep_last",
                           "checkpoint.load",
                           "comm.timeout",
                           "comm.backend",
                           "comm.require_rdma",
                           "run.directory",
                           "run.name",
                           "run.tags"}) {
    INFO(name);
    CHECK(find_key(name) != nullptr);
  }
  CHECK(find_key("train.step") == nullptr);
}

TEST_CASE("suggestions know misspellings, sections and other trainers' names") {
  CHECK(key_suggestion("train.stesp") == "; did you mean 'train.steps'?");
  CHECK(key_suggestion("learning_rate") == "; did you mean 'optimizer.learning_rate'?");
  CHECK(key_suggestion("train.learning_rate") == "; did you mean 'optimizer.learning_rate'?");
  CHECK(key_suggestion("data.seed.x").find("data.seed") != std::string::npos);
  CHECK(key_suggestion("model.seed") == "; did you mean 'train.seed' or 'data.seed'?");
  CHECK(key_suggestion("tp") == "; did you mean 'parallel.tensor'?");
  CHECK(key_suggestion("train.lr") == "; did you mean 'optimizer.learning_rate'?");
  CHECK(key_suggestion("trainer.sequence_lenght") == "; did you mean 'train.sequence_length'?");
  CHECK(key_suggestion("xyzzy.plugh").empty());
}

TEST_CASE("every name that is suggested for another trainer's is a key") {
  for (const auto* foreign : {"tp",
                              "pp",
                              "dp",
                              "zero_stage",
                              "lr",
                              "min_lr",
                              "warmup",
                              "grad_clip",
                              "max_steps",
                              "seq_len",
                              "batch_size",
                              "micro_batch_size",
                              "global_batch_size",
                              "recompute",
                              "n_layer",
                              "n_embd",
                              "n_head",
                              "ffn_hidden_size",
                              "dtype",
                              "save_interval"}) {
    const auto text = key_suggestion(foreign);
    INFO(foreign << text);
    const auto begin = text.find('\'') + 1;
    CHECK(find_key(text.substr(begin, text.rfind('\'') - begin)) != nullptr);
  }
}

TEST_CASE("docs/configuration.md is what the schema says") {
  const auto written =
      base::read_text_file(std::string(TRIREME_SOURCE_DIR) + "/docs/configuration.md");
  REQUIRE(written.ok());
  INFO("write it again: trireme config reference > docs/configuration.md");
  std::istringstream is(*written);
  std::istringstream should_be(reference_markdown());
  std::string line;
  for (std::string expected; std::getline(should_be, expected);) {
    std::getline(is, line);
    REQUIRE(line == expected);
  }
  CHECK((*written == reference_markdown()));  // no more lines than that
}
