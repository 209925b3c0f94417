// SPDX-License-Identifier: Apache-2.0
#include "kept.hpp"

#include "trireme/base/error.hpp"

#include <algorithm>

namespace trireme::plan {

KeptSettings::KeptSettings(const schema::Options& keys, const std::vector<std::string>& kept)
    : kept_(kept) {
  const auto& parallel = keys.parallel;
  values_ = {.tensor = parallel.tensor,
             .pipeline = parallel.pipeline,
             .virtual_stages = parallel.virtual_stages,
             .schedule = parallel.schedule,
             .micro_batch = keys.train.micro_batch,
             .sequence = parallel.sequence,
             .zero_level = parallel.zero_level};
  if (keeps("parallel.data")) data_ = parallel.data;
  const auto& again = keys.train.activation_checkpointing;
  if (keeps("train.activation_checkpointing") && again) {
    recompute_ = base::value_or_throw(config::parse_recompute(*again));
  }
}

bool KeptSettings::keeps(std::string_view key) const {
  return std::find(kept_.begin(), kept_.end(), key) != kept_.end();
}

bool KeptSettings::allows(const LayoutChoice& choice) const {
  const bool has_stages = choice.pipeline > 1;
  const auto is_other = [&](std::string_view key, auto own, auto value, bool counts = true) {
    return counts && own != value && keeps(key);
  };
  return !(data_ && *data_ != choice.data()) &&
         !is_other("parallel.tensor", values_.tensor, choice.tensor) &&
         !is_other("parallel.pipeline", values_.pipeline, choice.pipeline) &&
         !is_other("parallel.virtual_stages", values_.virtual_stages, choice.virtual_stages,
                   has_stages) &&
         !is_other("parallel.schedule", values_.schedule, choice.schedule, has_stages) &&
         !is_other("parallel.sequence", values_.sequence, choice.sequence, choice.tensor > 1) &&
         !is_other("parallel.zero_level", values_.zero_level, choice.zero_level,
                   choice.data() > 1) &&
         !is_other("train.micro_batch", values_.micro_batch, choice.micro_batch);
}

}  // namespace trireme::plan
