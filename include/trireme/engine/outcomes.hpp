// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace trireme::engine {

struct ScheduleOutcome {
  /// Time spent waiting for messages of other stages, by the host or its device; the device may
  /// report some of it a step late.
  double bubble_seconds = 0;
  /// Time that the computing thread gave to tensor-parallel collectives of activations; nothing on
  /// devices, whose streams wait for them by themselves.
  std::optional<double> tensor_seconds = {};
  /// Time that a device stood still for parameters of other data-parallel ranks, where forward or
  /// what came before it reads them; some of it may be told a step late. At ZeRO level 3 also in
  /// backward, and on CPUs the host's time in their gathers. At levels below, nothing where no
  /// group moves them by itself: the host waits in the update.
  std::optional<double> parameters_seconds = {};
  /// Weights that passes gathered to read them (ZeRO level 3), each unit counted whole.
  std::size_t gathered_bytes = 0;
};

struct ReduceOutcome {
  /// Loss: mean over all counted tokens of the global batch; the same bits on every rank.
  double loss = 0;
  /// Tokens that were counted.
  std::int64_t tokens = 0;
  /// Norm over all distinct parameters, each counted once; the same bits on every rank.
  double gradient_norm = 0;
  /// [stage]: ScheduleOutcome::bubble_seconds of every stage, mean over its ranks.
  std::vector<double> stage_bubble_seconds = {};
  /// Time that the computing thread spent on reductions: starting them, making progress, waiting.
  /// On a device, the time that it waited for them.
  double exposed_seconds = 0;
  /// Time in which one was under way, hidden or not; nothing on devices, which the host does not
  /// watch.
  std::optional<double> busy_seconds = {};
};

/// Values that an update uses.
struct Update {
  /// Number of the update, from 1: steps that were skipped are none.
  std::int64_t step = 1;
  double learning_rate = 0;
  /// Norm of this step's gradients, as reduce_gradients() returns it: larger ones than
  /// NumericsOptions::clip_norm are clipped.
  double gradient_norm = 0;
};

/// Where the computing thread's time in an update went, beside computing. On a device, which the
/// host only tells what to do, these are no times of the update.
struct UpdateOutcome {
  double gather_seconds = 0;   ///< parts of matrices to their owners
  double scatter_seconds = 0;  ///< parts of their directions back
  /// Parameters that other data-parallel ranks have updated (ZeRO level 1). On a device whose
  /// groups move data by themselves they are only started here (ScheduleOutcome).
  double parameters_seconds = 0;
  /// Waits for messages among all of these: nothing hides them.
  double exposed_seconds = 0;
};

struct EvaluationOutcome {
  double loss_sum = 0;
  std::int64_t tokens = 0;
};

/// Bytes of a rank's training step, each array counted whole: collectives of activations over tp,
/// of keys and values over cp, messages received over pp, reductions of gradients over replicas.
struct StepTraffic {
  std::size_t tensor = 0;
  std::size_t context = 0;
  std::size_t messages = 0;
  std::size_t gradients = 0;
};

}  // namespace trireme::engine
