// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/config.hpp"
#include "trireme/layout/parallel_rules.hpp"
#include "trireme/model/family.hpp"

#include <cstdint>
#include <optional>
#include <string_view>

namespace trireme::model {

inline const char* name(Architecture architecture) {
  return family(architecture).name;
}
base::Result<Architecture> architecture(std::string_view name);

using RopeScalingKind = config::RopeType;
/// "default", "linear" or "llama3".
const char* name(RopeScalingKind kind);

/// Stretching of rotary frequencies for contexts longer than the one trained on.
struct RopeScaling {
  RopeScalingKind kind = RopeScalingKind::none;
  double factor = 1.0;
  double low_freq_factor = 1.0;
  double high_freq_factor = 4.0;
  std::int64_t original_max_position_embeddings = 8192;
};

/// Sizes and choices of a transformer, in Hugging Face's words; model_fields.hpp lists them.
struct ModelConfig {
  Architecture architecture = Architecture::llama;
  std::int64_t vocab_size = 0;
  std::int64_t hidden_size = 0;
  std::int64_t intermediate_size = 0;
  int num_hidden_layers = 0;
  int num_attention_heads = 0;
  int num_key_value_heads = 0;
  std::int64_t head_dim = 0;
  std::int64_t max_position_embeddings = 0;
  double rope_theta = 10000.0;
  RopeScaling rope_scaling;
  float norm_eps = 1e-5F;
  bool tie_word_embeddings = false;
  float dropout = 0.0F;
  float initializer_range = 0.02F;

  const Family& family() const { return model::family(architecture); }
  bool has_rotary() const { return family().positions == PositionKind::rotary; }
};

/// From the keys of section `model`. `from` is the model that the folder of `model.from` holds,
/// where that key is given; other keys given override it, and the architecture must be its own.
/// `vocabulary` is the size of the tokenizer at hand, for a model that names none (0: unknown).
base::Result<ModelConfig> from_config(const config::Config& config,
                                      const std::optional<ModelConfig>& from,
                                      std::int64_t vocabulary = 0);

/// Shapes that make a model at all, each with its key, value and rule.
base::Status check(const ModelConfig& config);
/// Adds what the rules of a parallel arrangement ask of a model.
void describe(const ModelConfig& config, layout::ParallelArrangement& arrangement);

/// Parameters of the whole model; a tied table counts once.
std::int64_t parameter_count(const ModelConfig& config);
/// 6 N + 12 L h s floating-point operations per token (Chowdhery et al. 2022, PaLM, appendix B), no
/// discount for causality; N: matrices that enter products, a tied table (once), none looked up in.
double flops_per_token(const ModelConfig& config, std::int64_t sequence_length);

}  // namespace trireme::model
