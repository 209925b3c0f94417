// SPDX-License-Identifier: Apache-2.0
#include "dropout.hpp"

#include "trireme/base/philox.hpp"

#include "token_rows.hpp"

namespace trireme::layers {

void apply_residual_dropout(const StageContext& context, const MicroBatch& batch, const char* site,
                            int layer, const device::Tensor& from, const device::Tensor& to,
                            std::int64_t first) {
  const auto first_row = context.first_local_row() + first;
  device::Dropout dropout{
      .rate = batch.dropout,
      .seed = context.seed,
      .stream = base::stream_of(site) + static_cast<std::uint64_t>(layer),
      .first_row = 0,
      .first_column = 0,
      .width = context.config.hidden_size,
      .row_base = batch.places ? batch.places.slice(0, 2, 2) : device::Tensor{}};
  for (const auto& [rows, token] : token_rows(context, {first_row, first_row + from.dim(0)})) {
    dropout.first_row = batch.first_sequence * context.whole_length() + token;
    const auto of_part = [&, begin = rows.begin - first_row, count = rows.size()](
                             const device::Tensor& x) { return x.slice(0, begin, count); };
    context.kernels.issue(device::ApplyDropout{of_part(from), dropout, of_part(to)});
  }
}

}  // namespace trireme::layers
