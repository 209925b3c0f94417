// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/config/config.hpp"
#include "trireme/schema/options.hpp"
#include "trireme/train/report.hpp"
#include "trireme/train/save_interval.hpp"

#include <memory>

namespace trireme::train {

/// Seconds that a save of the model is taken for until one was timed: fp32 masters and two moments,
/// over storage with 100 MB/s for each rank and 5 GB/s in all.
double guessed_save_seconds(const model::ModelConfig& model, int ranks);

/// The interval between saves where it is auto: from an estimate first, then from the saves of this
/// start. On the first rank, whose clock decides when a save is due.
class AutoInterval {
 public:
  /// Failure (usage): nothing says how often nodes fail.
  static base::Result<AutoInterval> chosen(const schema::CheckpointOptions& keys,
                                           ChooseInterval choose, const model::ModelConfig& model,
                                           int ranks);

  const SaveInterval& now() const { return now_; }
  /// Takes a save. True if the interval has changed by more than a tenth of it; less stays as it
  /// is.
  bool took(const SaveRecord& record);

 private:
  /// Sums over saves to one storage. What they cost grows with the mean, outliers included.
  struct Saves {
    double stall = 0;
    double write = 0;
    int count = 0;

    void take(const SaveRecord& record);
    double mean(double sum) const { return count > 0 ? sum / count : 0; }
  };

  AutoInterval(ChooseInterval choose, model::ModelConfig model, bool beside_training)
      : choose_(std::move(choose)), model_(std::move(model)), beside_training_(beside_training) {}
  SaveCost measured() const;

  ChooseInterval choose_;
  model::ModelConfig model_;
  bool beside_training_;
  SaveInterval now_;
  /// To the nodes' own storage, and to the run directory.
  Saves to_nodes_;
  Saves to_run_;
};

/// Collective over the world. The interval of a start on the first rank; null on others, and where
/// minutes are given. Throws AgreedError (usage).
std::unique_ptr<AutoInterval> agreed_interval(const config::Config& config,
                                              const ChooseInterval& choose,
                                              const model::ModelConfig& model,
                                              comm::ProcessGroup& world);

}  // namespace trireme::train
