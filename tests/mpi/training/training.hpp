// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/axis_groups.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/engine/engine.hpp"

#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace trireme::testing {

/// Process groups of one rank of a mesh: real ones, or local ones for a mesh of one.
comm::OwnedAxisGroups mpi_groups(const layout::Mesh& mesh);
comm::OwnedAxisGroups local_groups();
/// The same groups for tensors of the device, in pieces so small that most collectives are cut; as
/// they were for the host's own memory. A simulated GPU refuses uses of tensors under way.
comm::OwnedAxisGroups staged(comm::OwnedAxisGroups groups, device::Device& device);

/// Whose layouts are compared: the reference (on_host.cpp), the same behind a simulated GPU
/// (simulated_gpu/on_simulated_gpu.cpp), or the first GPU, which all ranks share
/// (tests/gpu/on_gpu.cpp). Null, after the words that mark a test as skipped, where there is none.
std::unique_ptr<device::Kernels> kernels_under_test();

/// Tiny models of the three families; gpt2 ties its embeddings, llama has grouped heads and
/// scaled rotary frequencies, qwen3 has heads wider than hidden / heads.
model::ModelConfig tiny(model::Architecture architecture);

/// Options of this rank for a tiny model, with so many micro-batches of one sequence in a step of
/// all replicas together.
engine::EngineOptions tiny_options(model::Architecture architecture, const layout::Mesh& mesh,
                                   int micro_batches);

/// All meshes of this many ranks that the tiny model fits: 2 x 3 and 3 x 2, never only squares.
std::vector<layout::Mesh> meshes_of(int world_size, model::Architecture architecture);

/// Made-up tokens of a step, and documents, which depend on the sample's global index alone.
void fill(engine::Engine& engine, int step);

/// Numbers of one step; compared bit by bit or closely.
struct Observed {
  double loss = 0;
  double norm = 0;
  bool operator==(const Observed&) const = default;
};

/// A rank's part of one parameter when a run ended: its master.
struct ParameterCopy {
  std::string name;
  layout::Shape shape;
  layout::Box box;
  std::vector<float> values;
};

std::vector<ParameterCopy> masters_of(engine::Engine& engine);

/// Calls act(value, place in the whole tensor) for all elements of a box.
template <typename Act>
void each_element(const ParameterCopy& copy, const Act& act) {
  const bool vector = copy.shape.size() == 1;
  const auto columns = vector ? 1 : copy.box.length[1];
  const auto width = vector ? 1 : copy.shape[1];
  const auto first = vector ? 0 : copy.box.offset[1];
  for (std::size_t index = 0; index < copy.values.size(); ++index) {
    const auto at = static_cast<std::int64_t>(index);
    const auto row = copy.box.offset[0] + at / columns;
    act(copy.values[index], static_cast<std::size_t>(row * width + first + at % columns));
  }
}

/// A whole run, what of it was recorded and issued again, and what it made of the parameters.
struct TrainedRun {
  std::vector<Observed> observed;
  engine::Engine::GraphUse graphs;
  std::vector<ParameterCopy> parameters;
};

/// An action between a step's reduced gradients and its update.
using BeforeUpdate = std::function<void(engine::Engine&, int step)>;

/// Trains on made-up tokens; checks that the run took exactly the memory that was measured for it.
TrainedRun run_training(const engine::EngineOptions& options, const comm::AxisGroups& groups,
                        device::Kernels& kernels, int steps, double learning_rate = 3e-3,
                        const BeforeUpdate& before_update = {});
/// The same, where nothing else is looked at.
std::vector<Observed> train(const engine::EngineOptions& options, const comm::AxisGroups& groups,
                            device::Kernels& kernels, int steps, double learning_rate = 3e-3);

/// Observations of rank 0 alone, told to all ranks: the other ranks' cores are worth more to it.
std::vector<Observed> train_serially(const engine::EngineOptions& options, device::Kernels& kernels,
                                     int steps, double learning_rate = 3e-3);

/// The same with all parameters, whole, on all ranks.
TrainedRun run_serially(const engine::EngineOptions& options, device::Kernels& kernels, int steps,
                        double learning_rate = 3e-3);

/// Collective over all ranks. ‖x - serial‖ / ‖serial‖ over all elements of all parameters, each as
/// often as ranks have it. What is not finite, or missing, is infinitely far away.
double parameter_distance(const TrainedRun& run, const TrainedRun& serial);

/// Largest relative difference of losses; infinite where one is not finite, and between runs of
/// different lengths.
double distance(const std::vector<Observed>& a, const std::vector<Observed>& b);

}  // namespace trireme::testing
