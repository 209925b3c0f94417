// SPDX-License-Identifier: Apache-2.0
// Memory that collectives and messages of training work in, and recordings between them.
#include "trireme/comm/nccl_memory.hpp"
#include "trireme/engine/measure.hpp"

#include "mpi/nccl/training_over_nccl.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <utility>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;

TEST_CASE("all collectives and messages of a training step are in memory that NCCL was told of") {
  using comm::NcclRegistration;
  for (const auto& mesh : {mesh_of_world(), layout::Mesh::of(mpi().world_size(), 1, 1)}) {
    if (mesh.degree(Axis::pipeline) > 4) continue;
    for (const auto sequence : {model::SequenceParallel::off, model::SequenceParallel::on}) {
      const bool splits = sequence == model::SequenceParallel::on;
      if (splits && mesh.degree(Axis::tensor) == 1) continue;
      still_going(mesh.text());
      auto options = options_for(mesh, 1);
      options.model.num_hidden_layers = 4;
      options.schedule.micro_batches = 4;
      options.sharding.sequence_parallel = sequence;
      const bool meets = mesh.degree(Axis::tensor) > 1 || mesh.degree(Axis::data) > 1;
      const bool sends = mesh.degree(Axis::pipeline) > 1;
      const auto nccl = make_fake_nccl(mpi(), everybody());
      const auto plain = train_over_nccl(*nccl, options, {}, NcclRegistration::none);
      CHECK(nccl->buffers_registered == 0);
      CHECK(nccl->collectives.in_known_memory + nccl->messages.in_known_memory == 0);
      // Tied embeddings are collectives of the first and the last stage alone.
      if (meets) CHECK(nccl->collectives.elsewhere > 0);
      CHECK((nccl->messages.elsewhere > 0) == sends);
      const auto collectives = std::exchange(nccl->collectives, {}).elsewhere;
      const auto messages = std::exchange(nccl->messages, {}).elsewhere;
      CHECK(train_over_nccl(*nccl, options, {}, NcclRegistration::buffers) == plain);
      CHECK(nccl->collectives.in_known_memory == collectives);
      CHECK(nccl->collectives.elsewhere == 0);
      CHECK(nccl->messages.in_known_memory == messages);
      CHECK(nccl->messages.elsewhere == 0);
      CHECK(nccl->alive() == 0);
      CHECK(nccl->aborted == 0);
    }
  }
}

TEST_CASE("what tensor-parallel ranks work in are windows, where each rank fills them alike") {
  if (mpi().world_size() == 1 || mpi().world_size() > 4) return;
  const int size = mpi().world_size();
  const auto mesh = layout::Mesh::of(1, size / 2, 2);
  // Vocabularies that two ranks share evenly, and one that they do not.
  for (const int vocabulary : {98, 97}) {
    still_going(mesh.text());
    CAPTURE(mesh.text(), vocabulary);
    auto options = options_for(mesh, 1);
    options.model.num_hidden_layers = 2;
    options.model.vocab_size = vocabulary;
    const auto nccl = make_fake_nccl(mpi(), everybody());
    const auto expected = train_over_nccl(*nccl, options);
    nccl->buffers_registered = 0;
    nccl->collectives = {};
    {
      SimulatedKernels kernels(device::make_cpu_kernels(1));
      const auto groups = groups_over_nccl(*nccl, options.sharding.mesh, kernels.device(),
                                           comm::NcclRegistration::windows);
      using device::Purpose;
      const auto shared =
          comm::with_nccl_memory(kernels.device(), nccl->library(),
                                 {Purpose::parameters, Purpose::gradients, Purpose::activations,
                                  Purpose::workspace, Purpose::communication});
      auto memory = engine::Memory::on(*shared, engine::measure(options));
      CHECK(train_in(memory, options, groups, kernels) == expected);
    }
    // Parameters and gradients of replicas; of tensor-parallel ranks what arenas there are.
    const int of_replicas = size > 2 ? 2 : 0;
    const bool alike = vocabulary % 2 == 0;
    CHECK(nccl->windows_registered >= of_replicas + (alike ? 2 : 0));
    if (!alike) CHECK(nccl->windows_registered == of_replicas);
    CHECK(nccl->buffers_registered == 0);
    CHECK((nccl->collectives.in_known_memory > 0) == (alike || size > 2));
    if (alike) CHECK(nccl->collectives.elsewhere == 0);
    CHECK(nccl->allocations() == 0);
    CHECK(nccl->aborted == 0);
  }
}

TEST_CASE("recordings between NCCL's collectives change no bit, and none of its operations") {
  if (mpi().world_size() == 1 || mpi().world_size() > 4) return;
  auto options = options_for(layout::Mesh::of(1, mpi().world_size() / 2, 2), 1);
  options.model.num_hidden_layers = 2;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  const auto plain = std::exchange(nccl->collectives, {});
  options.memory.cuda_graphs = engine::CudaGraphs::yes;
  CHECK(train_over_nccl(*nccl, options) == expected);
  CHECK(plain.in_known_memory > 0);
  CHECK(nccl->collectives.in_known_memory == plain.in_known_memory);
  CHECK(nccl->collectives.elsewhere == 0);
  CHECK(nccl->alive() == 0);
  CHECK(nccl->aborted == 0);
}
