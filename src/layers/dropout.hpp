// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/philox.hpp"
#include "trireme/layers/stage_context.hpp"

namespace trireme::layers {

/// The mask over the residual stream's local rows, from `first` on, at one place of the model
/// ("dropout.mlp" of layer 3): the same numbers in every layout.
inline device::Dropout residual_dropout(const StageContext& context, const MicroBatch& batch,
                                        const char* site, int layer, std::int64_t first = 0) {
  return {.rate = batch.dropout,
          .seed = context.seed,
          .stream = base::stream_of(site) + static_cast<std::uint64_t>(layer),
          .first_row =
              batch.first_sequence * context.sequence_length + context.first_local_row() + first,
          .first_column = 0,
          .width = context.config.hidden_size,
          .row_base = batch.places ? batch.places.slice(0, 2, 2) : device::Tensor{}};
}

}  // namespace trireme::layers
