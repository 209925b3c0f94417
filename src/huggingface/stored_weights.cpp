// SPDX-License-Identifier: Apache-2.0
#include "stored_weights.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/suggest.hpp"

#include <set>
#include <vector>

namespace trireme::huggingface {
namespace {

/// Number of surplus tensors that a line of the log names.
constexpr std::size_t most_named = 4;

/// Buffers that older versions of transformers stored beside the parameters: masks and frequencies
/// that follow from config.json.
bool is_buffer(const std::string& name) {
  return name.ends_with(".attn.bias") || name.ends_with(".attn.masked_bias") ||
         name.ends_with(".rotary_emb.inv_freq");
}

}  // namespace

StoredWeights::StoredWeights(const std::filesystem::path& folder, const model::ModelConfig& config)
    : path_(folder), folder_(base::value_or_throw(SafetensorsFolder::open(folder))) {
  for (const auto& parameter : model::parameters(config)) {
    const auto source = stored_tensor(config, parameter);
    const auto& stored = entry(source);
    if (stored.shape != source.shape) {
      throw base::Error(
          base::ExitCode::checkpoint,
          base::format("{}: tensor '{}' has shape [{}] but the model needs [{}]; check config.json",
                       folder.string(), stored.name, base::join(stored.shape, ", "),
                       base::join(source.shape, ", ")));
    }
    sources_.emplace(parameter.tensor.name, source);
  }
  name_surplus(config.tie_word_embeddings);
}

/// Base models are stored without the prefix that their language models have.
const SafetensorsEntry& StoredWeights::entry(const StoredTensor& source) const {
  if (const auto* found = folder_.find(source.name)) return *found;
  if (const auto dot = source.name.find('.'); dot != std::string::npos) {
    if (const auto* found = folder_.find(source.name.substr(dot + 1))) return *found;
  }
  std::vector<std::string> names;
  for (const auto& each : folder_.tensors()) names.push_back(each.name);
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("{}: the weights have no tensor '{}' (config.json asks for it){}; check "
                   "config.json, or fetch the weights again",
                   path_.string(), source.name, base::did_you_mean(source.name, names)));
}

void StoredWeights::name_surplus(bool tied) const {
  std::set<std::string> used;
  for (const auto& [parameter, source] : sources_) used.insert(entry(source).name);
  if (tied) used.insert("lm_head.weight");
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

void StoredWeights::read(const std::string& parameter, const layout::Box& box,
                         const device::Tensor& destination) const {
  const auto& source = sources_.at(parameter);
  auto stored = box;
  stored.offset[0] += source.first_row;
  base::success_or_throw(folder_.read_box(entry(source).name, stored, destination,
                                          source.transposed
                                              ? SafetensorsFolder::Orientation::transposed
                                              : SafetensorsFolder::Orientation::as_stored));
}

device::DType StoredWeights::dtype(const std::string& parameter) const {
  const auto& stored = entry(sources_.at(parameter));
  return stored.dtype == SafetensorsType::bf16 ? device::DType::bf16 : device::DType::f32;
}

}  // namespace trireme::huggingface
