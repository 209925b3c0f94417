// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/options.hpp"
#include "trireme/data/dataset.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <memory>

namespace trireme::engine {

enum class Split { train, validation };

/// Collective over the group. Host-blocking: yes. The token files of data.train or data.validation.
/// The first rank alone reads the indices and looks for ids outside the vocabulary; the others see
/// that their files have the same sizes. Throws AgreedError: checkpoint for files, usage for keys,
/// launch where ranks see different files.
std::unique_ptr<data::TokenDataset> open_dataset(const config::Options& keys, Split split,
                                                 const model::ModelConfig& model,
                                                 comm::ProcessGroup& world);

/// The same of one process alone, before there are ranks.
base::Result<data::TokenDataset> open_dataset_alone(const config::Options& keys, Split split,
                                                    const model::ModelConfig& model,
                                                    data::FileCheck check);

/// Collective over the group. Host-blocking: yes. fingerprint() of the first rank, which alone
/// reads for it. Throws AgreedError (checkpoint).
std::uint64_t agreed_fingerprint(const data::TokenDataset& dataset, comm::ProcessGroup& world);

}  // namespace trireme::engine
