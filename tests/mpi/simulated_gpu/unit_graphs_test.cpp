// SPDX-License-Identifier: Apache-2.0
// CUDA graphs where units are gathered (ZeRO level 3): each pass through one is a graph between
// leases; and captures that are refused where leases begin and end.
#include "mpi/simulated_gpu/captured_run.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace trireme;
using namespace trireme::testing;
using engine::CudaGraphs;
using layout::Axis;
using model::Architecture;

TEST_CASE("each pass through a gathered unit is a graph, with the bits of kernels") {
  const auto architecture = GENERATE(Architecture::gpt2, Architecture::llama);
  const int micro_batches = GENERATE(1, 3);
  std::vector<layout::Mesh> some{layout::Mesh::of(1, 2, 1)};
  if (mpi().world_size() == 4) some = {layout::Mesh::of(2, 2, 1), layout::Mesh::of(1, 2, 2)};
  if (mpi().world_size() != 2 && mpi().world_size() != 4) return;
  for (const auto& mesh : some) {
    still_going(mesh.text());
    CAPTURE(mesh.text(), model::name(architecture), micro_batches);
    auto options = options_of_graphs(architecture, mesh);
    options.model.num_hidden_layers = 4;
    options.model.dropout = 0.1F;
    options.schedule.micro_batches = micro_batches;
    options.memory.recompute = layers::Recompute{layers::Activation::layer};
    options.sharding.zero_level = 3;
    const auto plain = run_on_device(options, CudaGraphs::no);
    const auto captured_run = run_on_device(options, CudaGraphs::yes);
    CHECK(captured_run.observed == plain.observed);
    if (mesh.degree(Axis::pipeline) > 1) {
      CHECK(captured_run.graphs.captured >= 2);
      continue;
    }
    // The table, each layer, the head, there and back.
    const auto parts = 2 * static_cast<std::size_t>(micro_batches * (4 + 2));
    CHECK(captured_run.graphs.captured == parts);
    CHECK(captured_run.graphs.launched == (steps - 1) * parts);
  }
}

TEST_CASE("captures refused at leases leave the bits of kernels, at ranks' own places") {
  if (mpi().world_size() != 2) return;
  auto options = options_of_graphs(Architecture::llama, layout::Mesh::of(1, 2, 1));
  options.model.num_hidden_layers = 4;
  for (const int level : {2, 3}) {
    options.sharding.zero_level = level;
    const auto plain = run_on_device(options, CudaGraphs::no);
    const auto all = run_on_device(options, CudaGraphs::yes).graphs;
    for (int captures = 1; captures <= 10; ++captures) {
      still_going("refused captures");
      CAPTURE(level, captures);
      const int of_rank = captures + mpi().world_rank().value();
      const auto refused = run_on_device(options, CudaGraphs::yes, of_rank);
      CHECK(refused.observed == plain.observed);
      CHECK(refused.graphs.captured < all.captured);
    }
  }
}
