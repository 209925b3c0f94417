// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/options.hpp"
#include "trireme/model/model_config.hpp"
#include "trireme/plan/layout_choice.hpp"
#include "trireme/predict/machine.hpp"
#include "trireme/predict/workload.hpp"

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

/// Private to the room.
namespace trireme::plan {

/// Owners of whole matrices in many layouts of one model, and what they update, each worked out
/// once: neither depends on what is computed again. For several threads at a time.
class MatrixOwners {
 public:
  /// Both must live as long.
  MatrixOwners(const schema::Options& keys, const model::ModelConfig& model)
      : keys_(keys), model_(model) {}

  /// As engine::options_from() has them.
  base::Result<engine::EngineOptions> options_of(const LayoutChoice& choice);
  /// As workload_of() has it.
  predict::Workload workload(const engine::EngineOptions& options, const predict::Machine& machine);

 private:
  using Key = std::vector<std::int64_t>;
  struct Work {
    double products = 0;
    double decompositions = 0;
  };

  const schema::Options& keys_;
  const model::ModelConfig& model_;
  std::mutex mutex_;
  std::map<Key, layout::Assignment> assignments_;
  std::map<Key, Work> works_;
};

}  // namespace trireme::plan
