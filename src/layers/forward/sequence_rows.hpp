// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/layers/stage_context.hpp"

#include <cstdint>
#include <vector>

namespace trireme::layers {

/// Rows of consecutive sequences of a micro-batch: among the rows of all sequences, and among those
/// of the residual stream that this rank has, of which there may be none.
struct SequenceRows {
  std::int64_t first_sequence = 0;
  std::int64_t sequences = 0;
  std::int64_t first = 0;
  std::int64_t count = 0;
  std::int64_t first_local = 0;
  std::int64_t local_count = 0;
  /// With sequence parallelism: rows, counted from `first`, at which those of each rank begin, and
  /// their end. Empty where all ranks have as many.
  std::vector<std::int64_t> parts;

  /// Views of tensors whose first dimension is the micro-batch's sequences, its rows, several lines
  /// for each of its rows, or the rank's rows; empty ones of empty ones.
  device::Tensor of_sequences(const device::Tensor& all) const {
    return all ? all.slice(0, first_sequence, sequences) : all;
  }
  device::Tensor of_rows(const device::Tensor& all, std::int64_t lines = 1) const {
    return all ? all.slice(0, first * lines, count * lines) : all;
  }
  device::Tensor of_local(const device::Tensor& local) const {
    return local ? local.slice(0, first_local, local_count) : local;
  }
  /// Where ranks' parts of a tensor of these rows begin, in elements.
  comm::Cuts cuts(std::int64_t width) const;
};

/// Rows that layers' forward takes in turns: the micro-batch's, or those of its two halves, where
/// collectives of one lie beside products of the other (StageContext::tensor_overlap).
std::vector<SequenceRows> forward_turns(const StageContext& context);

}  // namespace trireme::layers
