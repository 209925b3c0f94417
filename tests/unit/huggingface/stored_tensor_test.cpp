// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/stored_tensor.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

#include <map>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("Hugging Face's tensors are made of our parameters without gap or overlap") {
  for (const auto& config : {gpt2_124m(), llama3_8b(), qwen3_06b()}) {
    std::map<std::string, std::int64_t> rows;
    std::map<std::string, layout::Shape> shapes;
    for (const auto& parameter : model::parameters(config)) {
      const auto tensor = huggingface::stored_tensor(config, parameter);
      CHECK(rows[tensor.name] == tensor.first_row);
      rows[tensor.name] += parameter.tensor.shape[0];
      shapes[tensor.name] = tensor.shape;
      const bool matrix = tensor.shape.size() == 2;
      const std::size_t out = tensor.transposed && matrix ? 1 : 0;
      if (rows[tensor.name] > tensor.shape[out]) FAIL(tensor.name);
    }
    CHECK(shapes.size() <= rows.size());
  }
  const auto config = gpt2_124m();
  for (const auto& parameter : model::parameters(config)) {
    if (parameter.tensor.name != "layers.3.attention.k.weight") continue;
    const auto tensor = huggingface::stored_tensor(config, parameter);
    CHECK(tensor.name == "transformer.h.3.attn.c_attn.weight");
    CHECK(tensor.shape == layout::Shape{768, 2304});
    CHECK(tensor.transposed);
    CHECK(tensor.first_row == 768);
  }
}
