// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/model_config.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/model/model_check.hpp"
#include "trireme/model/model_fields.hpp"
#include "trireme/model/parameters.hpp"

#include <type_traits>

namespace trireme::model {
namespace {

base::Failure mistake(std::string text) {
  return base::usage_failure(std::move(text));
}

/// Fills what no source named with what the family's papers say.
base::Result<ModelConfig> with_defaults(ModelConfig model, const config::Config& config,
                                        std::int64_t vocabulary) {
  if (model.vocab_size == 0) model.vocab_size = vocabulary;
  if (model.intermediate_size == 0) {
    model.intermediate_size = model.family().mlp_ratio * model.hidden_size;
  }
  if (model.num_key_value_heads == 0) model.num_key_value_heads = model.num_attention_heads;
  if (model.head_dim == 0 && model.num_attention_heads > 0) {
    if (model.hidden_size % model.num_attention_heads != 0) {
      return mistake(base::format(
          "{} is not a multiple of {} (each head takes an equal part unless model.head_dim says "
          "otherwise); change one of them or give model.head_dim",
          config.cited("model.hidden_size"), config.cited("model.num_attention_heads")));
    }
    model.head_dim = model.hidden_size / model.num_attention_heads;
  }
  if (model.max_position_embeddings == 0) {
    model.max_position_embeddings = config.options().train.sequence_length;
  }
  return model;
}

/// A visitor of fields that gives the model the values of those keys that are given.
template <typename Model, typename Keys>
auto taking(Model& model, const Keys& keys) {
  return [&model, &keys](const char*, auto key, auto member) {
    using Number = std::remove_reference_t<decltype(model.*member)>;
    if (const auto& given = keys.*key) model.*member = static_cast<Number>(*given);
  };
}

void override_fields(ModelConfig& model, const config::ModelOptions& keys) {
  for_each_size(taking(model, keys));
  for_each_number(model.family(), taking(model, keys));
  auto& rope = model.rope_scaling;
  rope.kind = keys.rope_scaling.rope_type.value_or(rope.kind);
  for_each_rope_number(RopeScalingKind::llama3, taking(rope, keys.rope_scaling));
}

}  // namespace

const char* name(RopeScalingKind kind) {
  constexpr const char* names[] = {"default", "linear", "llama3"};
  return names[static_cast<std::size_t>(kind)];
}

base::Result<Architecture> architecture(std::string_view wanted) {
  for (const auto* each : families()) {
    if (wanted == each->name) return each->architecture;
  }
  return mistake(
      base::format("model.architecture = {} is not built in; use {}", wanted, family_names()));
}

base::Result<ModelConfig> from_config(const config::Config& config,
                                      const std::optional<ModelConfig>& from,
                                      std::int64_t vocabulary) {
  auto model = from.value_or(ModelConfig{});
  const auto& keys = config.options().model;
  TRIREME_EXPECT(from.has_value() == !keys.from.empty(), "model.from was read where it is given");
  if (const auto given = keys.architecture) {
    if (from && *given != model.architecture) {
      return mistake(
          base::format("{} but {} holds a {} (a model has one family); drop one of "
                       "the two keys",
                       config.cited("model.architecture"), keys.from, name(model.architecture)));
    }
    if (!from) model.tie_word_embeddings = family(*given).ties_embeddings;
    model.architecture = *given;
  } else if (!from) {
    return mistake(base::format(
        "model.architecture is not given (there is nothing to train); set it to {}, set model.from "
        "to a folder with a Hugging Face config.json, or name a run that has a model with "
        "run.directory or checkpoint.load",
        family_names()));
  }
  override_fields(model, keys);
  auto complete = with_defaults(model, config, vocabulary);
  if (!complete) return complete.failure();
  if (auto status = check(*complete); !status) return status.failure();
  return complete;
}

namespace {

/// Errors name keys with the prefix.
base::Status check_shapes(const ModelConfig& config, std::string_view prefix) {
  // Larger sizes would let byte counts of one tensor exceed 64 bits.
  constexpr std::int64_t largest = std::int64_t{1} << 28;
  base::Status sizes;
  for_each_size([&](const char* key, auto, auto member) {
    const std::int64_t value = config.*member;
    if (!sizes.ok() || (value >= 1 && value <= largest)) return;
    sizes = mistake(value == 0 ? base::format("{}{} is not given (a {} model needs it); set "
                                              "it, or model.from",
                                              prefix, key, name(config.architecture))
                               : base::format("{}{} = {} is out of range; use 1 to {}", prefix, key,
                                              value, largest));
  });
  if (!sizes.ok()) return sizes;
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return mistake(
        base::format("{}num_key_value_heads = {} does not divide {}num_attention_heads = {} (each "
                     "key head serves "
                     "as many query heads); try {}",
                     prefix, config.num_key_value_heads, prefix, config.num_attention_heads,
                     base::join(base::divisors(config.num_attention_heads), ", ")));
  }
  if (config.has_rotary() && config.head_dim % 2 != 0) {
    return mistake(
        base::format("{}head_dim = {} is odd (rotary embedding turns pairs); use an even width",
                     prefix, config.head_dim));
  }
  if (!config.family().free_heads &&
      (config.num_key_value_heads != config.num_attention_heads ||
       config.head_dim * config.num_attention_heads != config.hidden_size)) {
    return mistake(base::format(
        "{1} has as many key heads as query heads, and heads that fill hidden_size; leave "
        "{0}num_key_value_heads and {0}head_dim out, or use llama",
        prefix, name(config.architecture)));
  }
  return {};
}

}  // namespace

base::Status check(const ModelConfig& config) {
  return check_shapes(config, "model.");
}

base::Status check(const ModelConfig& config, std::string_view place) {
  const auto status = check_shapes(config, "");
  if (status.ok()) return {};
  return mistake(std::string(place) + status.failure().text);
}

void describe(const ModelConfig& config, layout::ParallelArrangement& arrangement) {
  arrangement.layers = config.num_hidden_layers;
  arrangement.heads = config.num_attention_heads;
  arrangement.kv_heads = config.num_key_value_heads;
  arrangement.vocabulary = config.vocab_size;
  arrangement.intermediate = config.intermediate_size;
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::int64_t count = 0;
  for (const auto& parameter : parameters(config)) {
    count += layout::element_count(parameter.tensor.shape);
  }
  return count;
}

namespace {

/// Parameters of the matrices that enter GEMMs. Rows of other tables are looked up; a tied table is
/// the head's matrix, too.
std::int64_t matmul_parameter_count(const ModelConfig& config) {
  std::int64_t count = config.tie_word_embeddings ? config.vocab_size * config.hidden_size : 0;
  for (const auto& parameter : parameters(config)) {
    const bool looked_up = parameter.place.kind == Place::Kind::embedding;
    if (parameter.tensor.shape.size() < 2 || looked_up) continue;
    count += layout::element_count(parameter.tensor.shape);
  }
  return count;
}

}  // namespace

double flops_per_token(const ModelConfig& config, std::int64_t sequence_length) {
  const double attention = 12.0 * config.num_hidden_layers *
                           static_cast<double>(config.num_attention_heads * config.head_dim) *
                           static_cast<double>(sequence_length);
  return 6.0 * static_cast<double>(matmul_parameter_count(config)) + attention;
}

}  // namespace trireme::model
