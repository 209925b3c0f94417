// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::testing {

/// How much is trained: what takes a GPU seconds is hours on one that is made of the host.
struct TrainingSize {
  int steps = 0;
  int layers = 0;
  std::int64_t sequence_length = 0;
  /// Micro-batches of all data-parallel ranks together.
  int micro_batches = 0;
};
TrainingSize training_size();

}  // namespace trireme::testing
