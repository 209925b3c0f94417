// SPDX-License-Identifier: Apache-2.0
// The names and shapes of Hugging Face's tensors.
#include "trireme/huggingface/stored_tensor.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>
#include <string_view>
#include <utility>

namespace trireme::huggingface {

using model::Place;

StoredTensor stored_tensor(const model::ModelConfig& config, const model::Parameter& parameter) {
  const auto& form = config.family().stored;
  const std::string_view ours = parameter.tensor.name;
  StoredTensor tensor;
  tensor.shape = parameter.tensor.shape;
  if (ours == "embedding.weight") {
    tensor.name = form.embedding;
  } else if (ours == "positions.weight") {
    tensor.name = form.positions;
  } else if (ours == "head.weight") {
    tensor.name = "lm_head.weight";
  } else if (parameter.place.kind == Place::Kind::head) {
    tensor.name = std::string(form.final_norm).append(ours.substr(ours.rfind('.')));
  } else {
    const auto rest = ours.substr(base::format("layers.{}.", parameter.place.layer).size());
    const auto name =
        std::find_if(form.layer.begin(), form.layer.end(),
                     [&](const model::StoredName& each) { return rest.starts_with(each.ours); });
    TRIREME_ENSURE(name != form.layer.end(),
                   "parameter without a Hugging Face name: " + parameter.tensor.name);
    tensor.name = base::format("{}{}.{}{}", form.layers, parameter.place.layer, name->theirs,
                               rest.substr(name->ours.size()));
    tensor.first_row = name->part * tensor.shape[0];
    tensor.shape[0] *= name->parts;
    tensor.transposed = form.transposed && tensor.shape.size() == 2;
    if (tensor.transposed) std::swap(tensor.shape[0], tensor.shape[1]);
  }
  return tensor;
}

}  // namespace trireme::huggingface
