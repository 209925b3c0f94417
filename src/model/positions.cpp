// SPDX-License-Identifier: Apache-2.0
#include "trireme/model/positions.hpp"

#include "trireme/base/format.hpp"

namespace trireme::model {

base::Status check_positions(const ModelConfig& config, std::string_view what,
                             std::int64_t positions) {
  const auto most = config.max_position_embeddings;
  if (positions <= most) return {};
  return base::usage_failure(base::format(
      "{} exceeds model.max_position_embeddings = {} ({}); use {} or less{}", what, most,
      config.has_rotary() ? "the model was not trained beyond, and its answers there mean little"
                          : "gpt2 has learned positions only up to there",
      most,
      config.has_rotary() ? ", or say that the model may go on with model.max_position_embeddings"
                          : ""));
}

}  // namespace trireme::model
