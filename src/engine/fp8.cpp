#include "fp8.hpp"

#include "trireme/base/format.hpp"

#include <algorithm>
#include <utility>

namespace trireme::engine {

using layout::Axis;

/// Cards multiply codes 16 at a time along both dimensions of a weight. The same everywhere, so
/// that a run may move to a card.
base::Status check_fp8(const EngineOptions& options) {
  if (options.linear_forward != model::LinearForward::e4m3) return {};
  constexpr std::int64_t together = 16;
  const auto& model = options.model;
  const auto tensor = std::int64_t{options.mesh.degree(Axis::tensor)};
  const auto kv_heads = std::max<std::int64_t>(1, model.num_key_value_heads / tensor);
  const auto heads = model.num_attention_heads / tensor;
  const std::pair<const char*, std::int64_t> widths[] = {
      {"model.hidden_size", model.hidden_size},
      {"model.intermediate_size / parallel.tensor", model.intermediate_size / tensor},
      {"model.num_attention_heads / parallel.tensor x model.head_dim", heads * model.head_dim},
      {"the width of a rank's queries, keys and values", (heads + 2 * kv_heads) * model.head_dim}};
  for (const auto& [what, width] : widths) {
    if (width % together == 0) continue;
    return base::usage_failure(base::format(
        "numerics.precision = fp8 but {} = {} is not a multiple of {} (FP8 products take so many "
        "numbers at a time); use {} or precision bf16",
        what, width, together, (width / together + 1) * together));
  }
  return {};
}

}  // namespace trireme::engine
