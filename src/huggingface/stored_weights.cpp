// SPDX-License-Identifier: Apache-2.0
#include "stored_weights.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/suggest.hpp"

#include <algorithm>
#include <bit>
#include <cstdint>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

namespace trireme::huggingface {
namespace {

/// Number of surplus tensors that a line of the log names.
constexpr std::size_t most_named = 4;

/// Number of elements that are compared at once.
constexpr std::int64_t most_compared = std::int64_t{1} << 20;

/// Buffers that older versions of transformers stored beside the parameters: masks and frequencies
/// that follow from config.json.
bool is_buffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

constexpr const char* embedding = "embedding.weight";
constexpr const char* head = "lm_head.weight";

/// A name without the prefix that models of language put before their base models' names.
std::optional<std::string> base_name(const std::string& name) {
  for (const std::string_view prefix : {"model.", "transformer."}) {
    if (name.starts_with(prefix)) return name.substr(prefix.size());
  }
  return std::nullopt;
}

/// Says which files of a folder are not read.
void name_unread_files(const std::filesystem::path& folder) {
  std::error_code ignored;
  const auto has = [&](const char* name) {
    return std::filesystem::exists(folder / name, ignored);
  };
  if (has(single_safetensors) && has(safetensors_index)) {
    base::log::warning(
        "huggingface",
        "{}: {} is read, and the files that {} names are not (transformers chooses so, "
        "too); remove the one that is stale",
        folder.string(), single_safetensors, safetensors_index);
  }
  if (has("adapter_config.json")) {
    base::log::warning(
        "huggingface",
        "{}: the adapter beside the weights (adapter_config.json) is not applied; merge "
        "it into the weights to use it",
        folder.string());
  }
}

/// A number that is none is that of the same bits.
bool is_same_number(float left, float right) {
  return left == right || std::bit_cast<std::uint32_t>(left) == std::bit_cast<std::uint32_t>(right);
}

}  // namespace

StoredWeights::StoredWeights(const std::filesystem::path& folder, const model::ModelConfig& config)
    : path_(folder), folder_(base::value_or_throw(SafetensorsFolder::open(folder))) {
  name_unread_files(folder);
  for (const auto& parameter : model::parameters(config)) {
    const auto source = stored_tensor(config, parameter);
    check(entry(source), source.shape);
    sources_.emplace(parameter.tensor.name, source);
  }
  if (config.tie_word_embeddings) redundant_head_ = folder_.find(head);
  if (redundant_head_ != nullptr) check(*redundant_head_, sources_.at(embedding).shape);
  name_surplus();
}

void StoredWeights::check(const SafetensorsEntry& stored, const layout::Shape& shape) const {
  if (stored.shape != shape) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("{}: tensor '{}' has shape [{}] but the model needs [{}]; check config.json",
                     path_.string(), stored.name, base::join(stored.shape, ", "),
                     base::join(shape, ", ")));
  }
  if (stored.dtype == SafetensorsType::other) {
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("{}: tensor '{}' is of type {}, and the model needs it (F32, F16 and BF16 are "
                     "read); convert the weights to one of these",
                     path_.string(), stored.name, stored.dtype_text));
  }
}

/// Base models are stored without the prefix that their language models have.
const SafetensorsEntry& StoredWeights::entry(const StoredTensor& source) const {
  const auto* found = folder_.find(source.name);
  if (const auto bare = base_name(source.name)) {
    const auto* other = folder_.find(*bare);
    if (found != nullptr && other != nullptr) {
      throw base::Error(
          base::ExitCode::checkpoint,
          base::format("{}: the weights have '{}' and '{}', which name one tensor (two "
                       "models are mixed); remove those that do not belong there",
                       path_.string(), source.name, *bare));
    }
    if (found == nullptr) found = other;
  }
  if (found != nullptr) return *found;
  std::vector<std::string> names;
  for (const auto& each : folder_.tensors()) names.push_back(each.name);
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("{}: the weights have no tensor '{}' (config.json asks for it){}; check "
                   "config.json, or fetch the weights again",
                   path_.string(), source.name, base::did_you_mean(source.name, names)));
}

void StoredWeights::name_surplus() const {
  std::set<std::string> used;
  for (const auto& [parameter, source] : sources_) used.insert(entry(source).name);
  if (redundant_head_ != nullptr) used.insert(redundant_head_->name);
  std::vector<std::string> surplus;
  for (const auto& each : folder_.tensors()) {
    if (!used.contains(each.name) && !is_buffer(each.name)) surplus.push_back(each.name);
  }
  if (surplus.empty()) return;
  const auto count = surplus.size();
  if (count > most_named) surplus.resize(most_named);
  base::log::warning("huggingface", "{}: {} not of this model and left out: {}{}", path_.string(),
                     base::counted(static_cast<std::int64_t>(count), "tensor"),
                     base::join(surplus, ", "), count > most_named ? ", ..." : "");
}

/// Rows of a redundant head must be those of the embedding, wherever the embedding is read: all
/// ranks together read all of it, and none reads more of the head than of the embedding.
void StoredWeights::compare_head(const layout::Box& box) const {
  const auto& table = entry(sources_.at(embedding)).name;
  const auto width = std::max<std::int64_t>(box.length[1], 1);
  const auto rows = std::max<std::int64_t>(most_compared / width, 1);
  std::vector<float> ours(static_cast<std::size_t>(std::min(rows, box.length[0]) * width));
  auto theirs = ours;
  for (std::int64_t row = 0; row < box.length[0]; row += rows) {
    const auto count = std::min(rows, box.length[0] - row);
    const layout::Box part{{box.offset[0] + row, box.offset[1]}, {count, box.length[1]}};
    const auto elements = layout::element_count(part);
    const auto read = [&](const std::string& name, std::vector<float>& values) {
      const device::Tensor to(values.data(), device::DType::f32, {elements});
      base::success_or_throw(folder_.read_box(name, part, to));
    };
    read(table, ours);
    read(redundant_head_->name, theirs);
    const auto end = ours.begin() + elements;
    const auto [at, other] = std::mismatch(ours.begin(), end, theirs.begin(), is_same_number);
    if (at == end) continue;
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format(
            "{}/config.json: tie_word_embeddings = true, but '{}' differs from '{}' in row {} "
            "({} and {}; transformers would not tie them); set it to false to use that head, "
            "or remove '{}' from the weights",
            path_.string(), redundant_head_->name, table,
            part.offset[0] + (at - ours.begin()) / width, *other, *at, redundant_head_->name));
  }
}

void StoredWeights::read(const std::string& parameter, const layout::Box& box,
                         const device::Tensor& destination) const {
  const auto& source = sources_.at(parameter);
  auto stored = box;
  stored.offset[0] += source.first_row;
  base::success_or_throw(folder_.read_box(entry(source).name, stored, destination,
                                          source.transposed
                                              ? SafetensorsFolder::Orientation::transposed
                                              : SafetensorsFolder::Orientation::as_stored));
  if (redundant_head_ != nullptr && parameter == embedding) compare_head(stored);
}

device::DType StoredWeights::dtype(const std::string& parameter) const {
  const auto& stored = entry(sources_.at(parameter));
  return stored.dtype == SafetensorsType::bf16 ? device::DType::bf16 : device::DType::f32;
}

}  // namespace trireme::huggingface
