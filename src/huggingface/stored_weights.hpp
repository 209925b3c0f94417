// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/huggingface/safetensors.hpp"
#include "trireme/huggingface/stored_tensor.hpp"

#include <filesystem>
#include <map>
#include <string>

namespace trireme::huggingface {

/// Safetensors of a Hugging Face folder, read by Trireme's parameter names.
class StoredWeights {
 public:
  /// Throws Error (checkpoint): files that are missing, cut or malformed; a tensor that the model
  /// needs and that is missing, is there under two names, or has another shape or a type that is
  /// not read; a tied model with a head of another shape. What of the folder is not used is named
  /// in the log: tensors, weights that others hide, adapters.
  StoredWeights(const std::filesystem::path& folder, const model::ModelConfig& config);

  /// Elements of `box` of a parameter, in our orientation, converted to the destination's type.
  /// Throws Error (checkpoint): a file that cannot be read; a tied model whose weights hold a head
  /// that differs from the embedding inside the box.
  void read(const std::string& parameter, const layout::Box& box,
            const device::Tensor& destination) const;
  /// The narrowest type that holds what is stored without loss.
  device::DType dtype(const std::string& parameter) const;

 private:
  const SafetensorsEntry& entry(const StoredTensor& source) const;
  void check(const SafetensorsEntry& stored, const layout::Shape& shape) const;
  void name_surplus() const;
  void compare_head(const layout::Box& box) const;

  std::filesystem::path path_;
  SafetensorsFolder folder_;
  std::map<std::string, StoredTensor> sources_;
  /// Head that a tied model's weights hold beside the embedding; null where there is none.
  const SafetensorsEntry* redundant_head_ = nullptr;
};

}  // namespace trireme::huggingface
