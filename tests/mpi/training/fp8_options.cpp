// SPDX-License-Identifier: Apache-2.0
#include "mpi/training/fp8_options.hpp"

#include "support/mpi/world.hpp"

namespace trireme::testing {

using layout::Axis;
using model::Architecture;

engine::EngineOptions options_in_fp8(Architecture architecture, const layout::Mesh& mesh) {
  engine::EngineOptions options;
  options.model = tiny(architecture);
  options.model.hidden_size = 64;
  options.model.intermediate_size = 64;
  options.model.num_hidden_layers = 4;
  options.model.num_attention_heads = 4;
  options.model.num_key_value_heads = architecture == Architecture::gpt2 ? 4 : 2;
  options.model.head_dim = 16;
  options.sharding.mesh = mesh;
  options.sharding.rank = base::Rank{mesh.world_size() == 1 ? 0 : mpi().world_rank().value()};
  options.schedule.micro_batch = 1;
  options.schedule.micro_batches = 8 / mesh.degree(Axis::data);
  options.schedule.sequence_length = 16;
  options.numerics.dtype = device::DType::bf16;
  options.numerics.linear_forward = layers::LinearForward::e4m3;
  options.sharding.bucket_bytes = 64 << 10;
  options.numerics.seed = 7;
  return options;
}

std::vector<layout::Mesh> meshes_for_fp8() {
  switch (mpi().world_size()) {
    case 2:
      return {layout::Mesh::of(2, 1, 1), layout::Mesh::of(1, 2, 1), layout::Mesh::of(1, 1, 2),
              layout::Mesh::of(1, 1, 1, 2)};
    case 4:
      return {layout::Mesh::of(2, 1, 2), layout::Mesh::of(1, 2, 2)};
    default:
      return {};
  }
}

}  // namespace trireme::testing
