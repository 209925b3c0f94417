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
  /// needs and that is missing or has another shape. Tensors that the model does not need are
  /// named in the log.
  StoredWeights(const std::filesystem::path& folder, const model::ModelConfig& config);

  /// Elements of `box` of a parameter, in our orientation, converted to the destination's type.
  /// Throws Error (checkpoint).
  void read(const std::string& parameter, const layout::Box& box,
            const device::Tensor& destination) const;
  /// The narrowest type that holds what is stored without loss.
  device::DType dtype(const std::string& parameter) const;

 private:
  const SafetensorsEntry& entry(const StoredTensor& source) const;
  void name_surplus(bool tied) const;

  std::filesystem::path path_;
  SafetensorsFolder folder_;
  std::map<std::string, StoredTensor> sources_;
};

}  // namespace trireme::huggingface
