// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/options.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace trireme::model {

using config::Architecture;

enum class NormKind { rms, layer };
enum class PositionKind { rotary, learned };

/// Fields by which a family's config.json says its sizes.
enum class ConfigFields {
  gpt2,  ///< n_embd, n_layer, n_head
  llama  ///< hidden_size, num_hidden_layers, rope_parameters
};

/// Parameters of a layer whose names begin with `ours`, and how they are called in Hugging Face's
/// files.
struct StoredName {
  std::string_view ours;
  std::string_view theirs;
  /// Several parameters that are parts of one stored tensor, row after row: which part this is, and
  /// of how many.
  int part = 0;
  int parts = 1;
};

/// Hugging Face's names and forms of a family.
struct StoredForm {
  /// Class that its config.json names, and classes without its head.
  std::string_view model_class;
  std::span<const std::string_view> base_classes;
  ConfigFields config = ConfigFields::llama;
  /// A field that switches off what is not built in.
  std::string_view switched_off;
  std::string_view embedding;
  std::string_view positions;
  /// Before ".weight" and ".bias".
  std::string_view final_norm;
  /// Before the number of a layer.
  std::string_view layers;
  std::span<const StoredName> layer;
  /// Matrices of layers lie as [in, out] (GPT-2's Conv1D).
  bool transposed = false;
};

/// Traits that distinguish a family of decoder-only transformers from the others: one row each, in
/// a file of its own.
struct Family {
  Architecture architecture{};
  const char* name = "";
  NormKind norm = NormKind::rms;
  PositionKind positions = PositionKind::rotary;
  /// Biases of projections.
  bool bias = false;
  /// An MLP of three matrices, one of them a gate.
  bool gated_mlp = true;
  /// Norms of queries and keys, over a head.
  bool head_norms = false;
  /// Keys and values may have fewer heads than queries, and heads any width.
  bool free_heads = true;
  /// Where nothing says otherwise.
  bool ties_embeddings = false;
  /// intermediate_size over hidden_size where it is not given; 0: it must be given.
  std::int64_t mlp_ratio = 0;
  StoredForm stored;
};

const Family& family(Architecture architecture);
std::span<const Family* const> families();
/// "gpt2, llama or qwen3".
std::string family_names();

}  // namespace trireme::model
