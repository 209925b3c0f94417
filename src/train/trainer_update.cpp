// SPDX-License-Identifier: Apache-2.0
// Decision on a step's numbers: an update, a step that is skipped, or the end of the run.
#include "trireme/base/format.hpp"
#include "trireme/comm/peer_error.hpp"
#include "trireme/train/trainer.hpp"

#include "nonfinite_steps.hpp"
#include "train/saving/saver.hpp"

namespace trireme::train {

bool Trainer::update(StepRecord& record) {
  switch (nonfinite_->judge(record.loss, record.gradient_norm)) {
    case NonfiniteSteps::Verdict::update:
      saver_->await_copy();
      record.update = engine_->update({.step = ++progress_.updates,
                                       .learning_rate = record.learning_rate,
                                       .gradient_norm = record.gradient_norm});
      return true;
    case NonfiniteSteps::Verdict::skip:
      return false;
    case NonfiniteSteps::Verdict::stop:
      break;
  }
  stop_before_update(record);
}

void Trainer::stop_before_update(const StepRecord& record) {
  // Unchanged state: it is that of after the step before.
  --progress_.step;
  saver_->finish();
  std::string kept = base::format("step {} is saved", progress_.step);
  if (progress_.step == 0) {
    kept = "no step is saved";
  } else if (!saver_->is_saved()) {
    try {
      saver_->save_without_pruning();
    } catch (const comm::AgreedError& error) {
      if (error.code() != base::ExitCode::checkpoint) throw;
      kept = base::format("step {} could not be saved: {}", progress_.step, error.what());
    }
  }
  throw comm::AgreedError(
      {base::ExitCode::checkpoint,
       base::format("loss {} and gradient norm {} at step {} are not finite (training has "
                    "diverged, or the data are broken); nothing was updated by it, and {}; lower "
                    "optimizer.learning_rate, set optimizer.clip_norm or "
                    "optimizer.skip_nonfinite, or begin another run from an earlier step "
                    "(run.directory=NEW checkpoint.load=STEP)",
                    base::number_text(record.loss), base::number_text(record.gradient_norm),
                    record.step, kept)},
      base::Rank{0}, cluster_.mesh.world_size());
}

}  // namespace trireme::train
