// SPDX-License-Identifier: Apache-2.0
// Training on a device whose memory the host cannot reach, whose stream does its work as late as it
// may: the bits are those of the same kernels on host memory at the same layout. A copy or a wait
// that is missing anywhere ends this test, or changes a number.
#include "mpi/training/training.hpp"

#include "trireme/base/format.hpp"
#include "trireme/device/passing_device.hpp"
#include "trireme/engine/measure.hpp"

#include "support/mpi/world.hpp"
#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <cstdint>
#include <cstring>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using layout::ScheduleKind;
using model::Architecture;
using model::SequenceParallel;

namespace {

constexpr int steps = 4;

/// The tiny models with fewer layers: bits that differ at all differ at once.
engine::EngineOptions options_for(Architecture architecture, const layout::Mesh& mesh) {
  auto options = tiny_options(architecture, mesh, 8);
  options.model.num_hidden_layers = 4;
  options.schedule.sequence_length = 16;
  return options;
}

/// Comparison of the results in the host's own memory and in the device's.
void compare(const engine::EngineOptions& options, Haste haste) {
  still_going(options.sharding.mesh.text());
  CAPTURE(options.sharding.mesh.text(), model::name(options.model.architecture),
          options.sharding.zero_level, device::name(options.numerics.dtype));
  const auto plain = device::make_cpu_kernels(1);
  const auto expected = train(options, mpi_groups(options.sharding.mesh).views(), *plain, steps);
  SimulatedKernels kernels(device::make_cpu_kernels(1), haste);
  const auto groups = staged(mpi_groups(options.sharding.mesh), kernels.device());
  CHECK(train(options, groups.views(), kernels, steps) == expected);
  CHECK(expected.back().loss < expected.front().loss);
}

std::vector<layout::Mesh> meshes() {
  switch (mpi().world_size()) {
    case 2:
      return {layout::Mesh::of(2, 1, 1), layout::Mesh::of(1, 2, 1), layout::Mesh::of(1, 1, 2)};
    case 4:
      return {layout::Mesh::of(2, 2, 1), layout::Mesh::of(1, 2, 2), layout::Mesh::of(2, 1, 2)};
    case 8:
      return {layout::Mesh::of(2, 2, 2)};
    default:
      return {layout::Mesh::of(1, mpi().world_size(), 1)};
  }
}

}  // namespace

TEST_CASE("training on a simulated GPU gives the host's bits, whatever its haste") {
  const auto kind = GENERATE(Haste::Kind::lazy, Haste::Kind::eager, Haste::Kind::mixed);
  const Haste haste{kind, static_cast<std::uint64_t>(mpi().world_rank().value())};
  for (const auto& mesh : meshes()) compare(options_for(Architecture::llama, mesh), haste);
}

TEST_CASE("tied embeddings, sharded states and split rows give the host's bits") {
  for (const auto& mesh : meshes()) {
    auto options = options_for(Architecture::gpt2, mesh);
    options.sharding.zero_level = 1;
    options.model.dropout = 0.1F;
    if (mesh.degree(Axis::tensor) > 1) options.sharding.sequence_parallel = SequenceParallel::on;
    if (mesh.degree(Axis::pipeline) > 1) {
      options.schedule.kind = ScheduleKind::interleaved;
      options.schedule.virtual_stages = 2;
    }
    compare(options, {Haste::Kind::lazy});
  }
}

TEST_CASE("bf16 with masters of its own gives the host's bits") {
  for (const auto& mesh : meshes()) {
    auto options = options_for(Architecture::qwen3, mesh);
    options.numerics.dtype = device::DType::bf16;
    options.memory.recompute = layers::Recompute{layers::Activation::layer};
    for (const int level : {1, 2, 3}) {
      options.sharding.zero_level = level;
      compare(options, {Haste::Kind::lazy});
    }
  }
}

TEST_CASE("rules that update whole matrices give the host's bits") {
  for (const auto rule : {optim::RuleKind::muon, optim::RuleKind::shampoo, optim::RuleKind::soap}) {
    for (const auto& mesh : meshes()) {
      CAPTURE(optim::name(rule));
      auto options = options_for(Architecture::llama, mesh);
      options.sharding.rule.kind = rule;
      // Factors are decomposed in the first update and in every other one.
      options.sharding.rule.factors.root_every = 2;
      options.sharding.zero_level = 1;
      compare(options, {Haste::Kind::lazy});
    }
  }
}

namespace {

/// Bits of all that a checkpoint takes from this rank.
std::vector<std::vector<std::uint32_t>> saved_bits(const engine::EngineOptions& options,
                                                   const comm::AxisGroups& groups,
                                                   device::Kernels& kernels) {
  auto memory = engine::Memory::on(kernels.device(), engine::measure(options));
  engine::Engine engine(options, groups, kernels, memory);
  engine.initialise();
  std::vector<std::vector<std::uint32_t>> bits;
  for (const auto& shard : engine.saved_shards()) {
    device::HostMirror mirror(kernels.device());
    const auto here = mirror.of(shard);
    mirror.fetch();
    auto& words = bits.emplace_back(static_cast<std::size_t>(shard.element_count()));
    std::memcpy(words.data(), here.raw(), here.byte_count());
  }
  return bits;
}

}  // namespace

TEST_CASE("a checkpoint takes from a device what it takes from the host, between tensors too") {
  for (const auto& mesh : meshes()) {
    for (const auto dtype : {device::DType::f32, device::DType::bf16}) {
      CAPTURE(mesh.text(), device::name(dtype));
      auto options = options_for(Architecture::llama, mesh);
      options.numerics.dtype = dtype;
      for (const int level : {1, 3}) {
        options.sharding.zero_level = level;
        const auto plain = device::make_cpu_kernels(1);
        const auto expected = saved_bits(options, mpi_groups(mesh).views(), *plain);
        // Its fresh memory is poison.
        SimulatedKernels kernels(device::make_cpu_kernels(1));
        const auto groups = staged(mpi_groups(mesh), kernels.device());
        CHECK(saved_bits(options, groups.views(), kernels) == expected);
      }
    }
  }
}

namespace {

/// Forgets every wait.
class Hasty final : public device::PassingDevice {
 public:
  using PassingDevice::PassingDevice;
  device::Event record() override { return {}; }
  void synchronize() override {}
};

}  // namespace

TEST_CASE("groups that do not wait for the device are found out") {
  if (mpi().world_size() == 1) return;
  for (const auto& mesh : meshes()) {
    CAPTURE(mesh.text());
    const auto options = options_for(Architecture::llama, mesh);
    const auto plain = device::make_cpu_kernels(1);
    const auto expected = train(options, mpi_groups(mesh).views(), *plain, 1);
    SimulatedKernels kernels(device::make_cpu_kernels(1));
    Hasty hasty(kernels.device());
    const auto groups = staged(mpi_groups(mesh), hasty);
    const auto observed = train(options, groups.views(), kernels, 1);
    CHECK(!(observed == expected));
    kernels.synchronize();
  }
}
