// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/config/options.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/model/model_config.hpp"

#include <memory>

namespace trireme::engine {

enum class Split { train, validation };

/// The token files of data.train or data.validation.
base::Result<std::unique_ptr<data::TokenDataset>> open_dataset(const config::Options& keys,
                                                               Split split,
                                                               const model::ModelConfig& model);

}  // namespace trireme::engine
