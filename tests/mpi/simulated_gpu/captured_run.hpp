// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/measure.hpp"

#include "mpi/training/training.hpp"
#include "support/mpi/world.hpp"
#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

/// Training on a simulated GPU, from CUDA graphs or kernel by kernel.
namespace trireme::testing {

inline constexpr int steps = 4;

struct CapturedRun {
  std::vector<Observed> observed;
  std::vector<std::size_t> captured;  // [step]
  engine::Engine::GraphUse graphs;
};

/// Change of a step's batches after they were filled.
using Change = std::function<void(engine::Engine&, int step)>;

/// `captures`: how many the device begins at most.
inline CapturedRun run_on_device(engine::EngineOptions options, engine::CudaGraphs cuda_graphs,
                                 int captures = 1 << 20, const Change& change = {}) {
  options.memory.cuda_graphs = cuda_graphs;
  SimulatedKernels kernels(
      device::make_cpu_kernels(1),
      {Haste::Kind::mixed, static_cast<std::uint64_t>(options.sharding.rank.value())});
  kernels.device().refuse_captures_from(captures);
  const auto groups = staged(mpi_groups(options.sharding.mesh), kernels.device());
  const auto measured = engine::measure(options);
  auto memory = engine::Memory::on(kernels.device(), measured);
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  CapturedRun run;
  for (int step = 0; step < steps; ++step) {
    fill(engine, step);
    if (change) change(engine, step);
    engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update({step + 1, 3e-3, reduced.gradient_norm});
    run.observed.push_back({reduced.loss, reduced.gradient_norm});
    run.captured.push_back(engine.graph_use().captured);
  }
  CHECK(memory.peak_bytes() == measured);
  run.graphs = engine.graph_use();
  return run;
}

inline engine::EngineOptions options_of_graphs(model::Architecture architecture,
                                               const layout::Mesh& mesh) {
  auto options = tiny_options(architecture, mesh, 8);
  options.model.num_hidden_layers = 2;
  options.schedule.sequence_length = 16;
  return options;
}

}  // namespace trireme::testing
