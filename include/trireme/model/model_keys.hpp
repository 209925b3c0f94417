// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/model/model_config.hpp"

#include <optional>
#include <string>
#include <vector>

/// Keys of section `model` for a model that is known: the inverse of from_config().
namespace trireme::model {

/// The configuration with a model's values where its keys are `auto`, the architecture among them.
config::Config with_model(const config::Config& config, const ModelConfig& model);

/// Keys that contradict the model that weights were trained with, each as "model.rope_theta = 500
/// (--set) instead of 10000". Keys at `auto` take their value from `from`, the model of the folder
/// model.from, where it is at hand. Not among them are keys that weights do not depend on
/// (schema::Concern), and the number of positions where the model stores none.
std::vector<std::string> contradictions(const config::Config& config, const ModelConfig& trained,
                                        const std::optional<ModelConfig>& from = {});

/// The configuration of a start from weights of this model: every key that weights depend on has
/// the model's value, and model.from is empty. Keys that contradict it are replaced.
config::Config with_trained_model(const config::Config& config, const ModelConfig& trained);

/// Differences of two models that weights depend on, each as "model.rope_theta = 500 instead of
/// 10000".
std::vector<std::string> differences(const ModelConfig& model, const ModelConfig& trained);

/// True if both models have the same tensors: names and shapes.
bool has_same_tensors(const ModelConfig& one, const ModelConfig& other);

}  // namespace trireme::model
