// SPDX-License-Identifier: Apache-2.0
#include "trireme/engine/stage_layers.hpp"

#include "unit/model/published.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::tests;
using Counts = std::vector<int>;

namespace {

engine::StageLayers stage_layers_of(const engine::EngineOptions& options) {
  return engine::stage_layers(options.model, options.schedule,
                              options.sharding.mesh.degree(layout::Axis::pipeline));
}

}  // namespace

TEST_CASE("the default assignment of Llama-3 8B weighs its head") {
  engine::EngineOptions options;
  options.model = llama3_8b();
  options.sharding.mesh = layout::Mesh::of(4, 1, 1);
  options.schedule.virtual_stages = 2;
  options.schedule.sequence_length = 8192;
  const auto layers = stage_layers_of(options);
  // 128256 * 4096 over a layer's 218,103,808 weights and 2 * 4096 * 8192 of attention.
  CHECK(layers.head_layers == Approx(525336576.0 / (218103808.0 + 67108864.0)));
  CHECK(layers.counts == Counts{4, 4, 4, 4, 4, 4, 5, 3});
  CHECK(layers.even_balance == Approx(0.860).margin(0.001));
  CHECK(layers.balance >= 0.94);
  CHECK(layers.text().find("4,4,4,4,4,4,5,3") == 0);
  // Long sequences make the head light.
  options.schedule.sequence_length = 1 << 20;
  CHECK(stage_layers_of(options).counts == Counts(8, 4));
}

TEST_CASE("a small model's last stage may have its large head alone, and counts given are kept") {
  engine::EngineOptions options;
  options.model = gpt2_124m();
  options.sharding.mesh = layout::Mesh::of(4, 1, 1);
  options.schedule.sequence_length = 1024;
  CHECK(stage_layers_of(options).counts == Counts{4, 4, 4, 0});
  options.schedule.stage_layers = {3, 3, 3, 3};
  CHECK(stage_layers_of(options).counts == Counts{3, 3, 3, 3});
  options.schedule.stage_layers.clear();
  options.sharding.mesh = layout::Mesh::of(1, 1, 1);
  CHECK(stage_layers_of(options).counts == Counts{12});
}
