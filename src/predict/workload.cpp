// SPDX-License-Identifier: Apache-2.0
#include "trireme/predict/workload.hpp"

namespace trireme::predict {

double Shape::layer_parameters() const {
  const auto attention = hidden * (2 * query_width() + 2 * kv_width());
  const auto mlp = (gated_mlp ? 3 : 2) * hidden * intermediate;
  return static_cast<double>(attention + mlp);
}

}  // namespace trireme::predict
