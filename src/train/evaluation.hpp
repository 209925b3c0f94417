// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/dataset.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/inference/samples.hpp"
#include "trireme/train/checkpoints.hpp"
#include "trireme/train/report.hpp"

#include <functional>
#include <memory>
#include <optional>

namespace trireme::train {

/// Held-out loss of a run, and samples of text after it.
class Evaluation {
 public:
  /// Called between batches with the seconds since the last call, or since the begin; false ends
  /// the evaluation.
  using Between = std::function<bool(double seconds)>;

  struct Outcome {
    /// False if it was ended between batches: it is due again then.
    bool completed = false;
    /// Its loss is among the best of the run.
    bool is_among_best = false;
  };

  /// `data` and `sampler` may be null: no held-out data, no prompts. The others outlive this.
  Evaluation(const config::Options& keys, std::unique_ptr<data::TokenDataset> data,
             std::unique_ptr<inference::Sampler> sampler, engine::Engine& engine, Report& report);

  /// True if a stop may have left one to be taken.
  bool is_wanted() const { return data_ && keys_.train.eval_every > 0; }
  /// True after steps that are followed by an evaluation.
  bool is_due(std::int64_t step) const;
  /// Collective over all ranks. Evaluates after the last step of `progress`, and notes it there.
  Outcome run(Progress& progress, const Between& between);

  /// Collective over all ranks. Continues the prompts of train.sample_prompts, if there are any,
  /// and returns the seconds that it took.
  std::optional<double> take_samples(std::int64_t step);

 private:
  const config::Options& keys_;
  std::unique_ptr<data::TokenDataset> data_;
  std::unique_ptr<inference::Sampler> sampler_;
  engine::Engine& engine_;
  Report& report_;
};

}  // namespace trireme::train
