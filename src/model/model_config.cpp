#include "trireme/model/model_config.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"
#include "trireme/model/parameters.hpp"

#include <algorithm>
#include <cmath>

namespace trireme::model {
namespace {

base::Failure mistake(std::string text) {
  return base::usage_failure(std::move(text));
}

/// Fills what no source named with what the family's papers say.
base::Result<ModelConfig> with_defaults(ModelConfig model, const config::Config& config,
                                        std::int64_t vocabulary) {
  const bool gpt2 = model.architecture == Architecture::gpt2;
  if (model.vocab_size == 0) model.vocab_size = vocabulary;
  if (model.intermediate_size == 0 && gpt2) model.intermediate_size = 4 * model.hidden_size;
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
    model.max_position_embeddings = config.integer("train.sequence_length");
  }
  return model;
}

void override_sizes(ModelConfig& model, const config::Config& config) {
  const auto size = [&config](const char* key, std::int64_t& value) {
    value = config.integer_or(key, value);
  };
  const auto count = [&config](const char* key, int& value) {
    value = config.count_or(key, value);
  };
  size("model.vocab_size", model.vocab_size);
  size("model.hidden_size", model.hidden_size);
  size("model.intermediate_size", model.intermediate_size);
  size("model.head_dim", model.head_dim);
  size("model.max_position_embeddings", model.max_position_embeddings);
  count("model.num_hidden_layers", model.num_hidden_layers);
  count("model.num_attention_heads", model.num_attention_heads);
  count("model.num_key_value_heads", model.num_key_value_heads);
}

void override_numbers(ModelConfig& model, const config::Config& config) {
  const auto real = [&config](const char* key, double value) { return config.real_or(key, value); };
  model.rope_theta = real("model.rope_theta", model.rope_theta);
  const char* eps_key =
      model.architecture == Architecture::gpt2 ? "model.layer_norm_eps" : "model.rms_norm_eps";
  model.norm_eps = static_cast<float>(real(eps_key, static_cast<double>(model.norm_eps)));
  model.dropout = static_cast<float>(real("model.dropout", static_cast<double>(model.dropout)));
  model.initializer_range = static_cast<float>(
      real("model.initializer_range", static_cast<double>(model.initializer_range)));
  model.tie_word_embeddings =
      config.flag_or("model.tie_word_embeddings", model.tie_word_embeddings);
  auto& rope = model.rope_scaling;
  const auto kind = config.text_or("model.rope_scaling.rope_type", "");
  if (kind == "llama3") rope.kind = RopeScalingKind::llama3;
  if (kind == "linear") rope.kind = RopeScalingKind::linear;
  if (kind == "default") rope.kind = RopeScalingKind::none;
  rope.factor = real("model.rope_scaling.factor", rope.factor);
  rope.low_freq_factor = real("model.rope_scaling.low_freq_factor", rope.low_freq_factor);
  rope.high_freq_factor = real("model.rope_scaling.high_freq_factor", rope.high_freq_factor);
  rope.original_max_position_embeddings = config.integer_or(
      "model.rope_scaling.original_max_position_embeddings", rope.original_max_position_embeddings);
}

}  // namespace

const char* name(Architecture architecture) {
  switch (architecture) {
    case Architecture::gpt2:
      return "gpt2";
    case Architecture::llama:
      return "llama";
    case Architecture::qwen3:
      return "qwen3";
  }
  return "?";
}

base::Result<Architecture> architecture(std::string_view wanted) {
  for (const auto candidate : {Architecture::gpt2, Architecture::llama, Architecture::qwen3}) {
    if (wanted == name(candidate)) return candidate;
  }
  return mistake(
      base::format("model.architecture = {} is not built in; use gpt2, llama or qwen3", wanted));
}

base::Result<ModelConfig> from_config(const config::Config& config, std::int64_t vocabulary) {
  ModelConfig model;
  const auto& folder = config.text("model.from");
  if (!folder.empty()) {
    if (!std::filesystem::exists(std::filesystem::path(folder) / "config.json")) {
      return mistake(
          base::format("{}: there is no '{}/config.json' (it says what the model is); name a "
                       "Hugging Face folder",
                       config.cited("model.from"), folder));
    }
    auto read = read_huggingface(folder);
    if (!read) return read.failure();
    model = *read;
  }
  if (!config.automatic("model.architecture")) {
    auto given = architecture(config.text("model.architecture"));
    if (!given) return given.failure();
    if (!folder.empty() && *given != model.architecture) {
      return mistake(
          base::format("{} but {} holds a {} (a model has one family); drop one of "
                       "the two keys",
                       config.cited("model.architecture"), folder, name(model.architecture)));
    }
    if (folder.empty()) model.tie_word_embeddings = *given == Architecture::gpt2;
    model.architecture = *given;
  } else if (folder.empty()) {
    return mistake(
        "model.architecture is not given (there is nothing to train); set it to gpt2, llama or "
        "qwen3, set model.from to a folder with a Hugging Face config.json, or name a run that has "
        "a model with run.directory or checkpoint.load");
  }
  override_sizes(model, config);
  override_numbers(model, config);
  auto complete = with_defaults(model, config, vocabulary);
  if (!complete) return complete.failure();
  if (auto status = check(*complete); !status) return status.failure();
  return complete;
}

base::Status check(const ModelConfig& config) {
  const std::pair<const char*, std::int64_t> sizes[] = {
      {"vocab_size", config.vocab_size},
      {"hidden_size", config.hidden_size},
      {"intermediate_size", config.intermediate_size},
      {"num_hidden_layers", config.num_hidden_layers},
      {"num_attention_heads", config.num_attention_heads},
      {"num_key_value_heads", config.num_key_value_heads},
      {"head_dim", config.head_dim},
      {"max_position_embeddings", config.max_position_embeddings},
  };
  // Beyond this, byte counts of one tensor would leave 64 bits.
  constexpr std::int64_t largest = std::int64_t{1} << 28;
  for (const auto& [key, value] : sizes) {
    if (value < 1 || value > largest) {
      return mistake(value == 0 ? base::format("model.{} is not given (a {} model needs it); set "
                                               "it, or model.from",
                                               key, name(config.architecture))
                                : base::format("model.{} = {} is out of range; use 1 to {}", key,
                                               value, largest));
    }
  }
  if (config.num_attention_heads % config.num_key_value_heads != 0) {
    return mistake(base::format(
        "model.num_key_value_heads = {} does not divide model.num_attention_heads = {} (each key "
        "head serves as many query heads); try {}",
        config.num_key_value_heads, config.num_attention_heads,
        base::join(base::divisors(config.num_attention_heads), ", ")));
  }
  if (config.has_rotary() && config.head_dim % 2 != 0) {
    return mistake(
        base::format("model.head_dim = {} is odd (rotary embedding turns pairs); use "
                     "an even width",
                     config.head_dim));
  }
  if (config.architecture == Architecture::gpt2 &&
      (config.num_key_value_heads != config.num_attention_heads ||
       config.head_dim * config.num_attention_heads != config.hidden_size)) {
    return mistake(
        "gpt2 has as many key heads as query heads, and heads that fill hidden_size; leave "
        "model.num_key_value_heads and model.head_dim out, or use llama");
  }
  return {};
}

base::Status check_on(const ModelConfig& config, const layout::Mesh& mesh) {
  const int tensor = mesh.degree(layout::Axis::tensor);
  const int pipeline = mesh.degree(layout::Axis::pipeline);
  if (config.num_attention_heads % tensor != 0) {
    return mistake(base::format(
        "parallel.tensor = {} does not divide model.num_attention_heads = {} (each rank holds "
        "whole heads); try {}",
        tensor, config.num_attention_heads,
        base::join(base::divisors(config.num_attention_heads), ", ")));
  }
  if (config.num_key_value_heads % tensor != 0 && tensor % config.num_key_value_heads != 0) {
    std::vector<int> valid;
    for (const int choice : base::divisors(config.num_attention_heads)) {
      if (config.num_key_value_heads % choice == 0 || choice % config.num_key_value_heads == 0) {
        valid.push_back(choice);
      }
    }
    return mistake(base::format(
        "parallel.tensor = {} and model.num_key_value_heads = {} do not divide one another (key "
        "heads are split evenly or replicated evenly); try {}",
        tensor, config.num_key_value_heads, base::join(valid, ", ")));
  }
  if (config.vocab_size < tensor || config.intermediate_size < tensor) {
    return mistake(
        base::format("parallel.tensor = {} exceeds model.vocab_size or "
                     "model.intermediate_size (every rank needs a row); use less",
                     tensor));
  }
  if (pipeline > config.num_hidden_layers) {
    return mistake(base::format(
        "parallel.pipeline = {} exceeds model.num_hidden_layers = {} (each stage holds a layer); "
        "use {} or less",
        pipeline, config.num_hidden_layers, config.num_hidden_layers));
  }
  return {};
}

std::int64_t parameter_count(const ModelConfig& config) {
  std::int64_t count = 0;
  for (const auto& parameter : parameters(config)) {
    count += layout::element_count(parameter.tensor.shape);
  }
  return count;
}

namespace {

/// Of the matrices that enter products. Rows of other tables are looked up; a tied table is the
/// head's matrix, too.
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
