// Training over groups of NCCL, with a stand-in for the library whose sums are in other orders than
// ours.
#include "trireme/comm/nccl_memory.hpp"
#include "trireme/device/passing_device.hpp"

#include "comm/progress.hpp"
#include "mpi/nccl/over_nccl.hpp"
#include "support/detached/device.hpp"
#include "support/fake_nccl/group.hpp"
#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <utility>

using namespace trireme;
using namespace trireme::testing;
using layout::Axis;
using model::Architecture;

namespace {

/// Some steps in memory of the caller's.
std::vector<Observed> train_in(engine::Memory& memory, const engine::EngineOptions& options,
                               const OwnedGroups& groups, device::Kernels& kernels) {
  engine::Engine engine(options, groups.views(), kernels, memory);
  engine.initialise();
  std::vector<Observed> observed;
  for (int step = 0; step < steps; ++step) {
    fill(engine, step);
    const auto outcome = engine.run_schedule();
    const auto reduced = engine.reduce_gradients();
    engine.update(3e-3, step + 1);
    observed.push_back({outcome.loss, reduced.gradient_norm});
  }
  return observed;
}

/// What a device forgets to put in order.
enum class Forgets { that_it_follows_groups, that_groups_follow_it };

/// Passes all on but that.
class Forgetful final : public device::PassingDevice {
 public:
  Forgetful(device::Device& inner, Forgets what) : PassingDevice(inner), what_(what) {
    // Groups watch this device, and the host waits for the other.
    inner.add(mpi().progress());
  }
  Forgetful(const Forgetful&) = delete;
  Forgetful& operator=(const Forgetful&) = delete;
  ~Forgetful() override { inner().remove(mpi().progress()); }

  device::Event record() override {
    return what_ == Forgets::that_groups_follow_it ? device::Event() : inner().record();
  }
  void follow(const device::Event& event) override {
    if (what_ != Forgets::that_it_follows_groups) inner().follow(event);
  }

 private:
  Forgets what_;
};

}  // namespace

TEST_CASE(
    "training over NCCL is that over the host but for the order of sums, and repeats itself") {
  const auto mesh = mesh_of_world();
  still_going(mesh.text());
  const auto cpu = device::make_cpu_kernels(1);
  const auto on_host = mpi_groups(mesh);
  const auto options = options_for(mesh, 0);
  const auto expected = train(options, on_host.views(), *cpu, steps);
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto found = train_over_nccl(*nccl, options);
  CHECK(distance(found, expected) <= 1e-5);
  CHECK(train_over_nccl(*nccl, options) == found);
  // Shards of an optimizer are sums of the same numbers in the same order.
  CHECK(train_over_nccl(*nccl, options_for(mesh, 1)) == found);
  CHECK(nccl->alive() == 0);
  CHECK(nccl->aborted == 0);
}

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
      options.micro_batches = 4;
      options.sequence_parallel = sequence;
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
  if (mpi().world_size() == 1) return;
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
      DetachedKernels kernels(device::make_cpu_kernels(1));
      auto groups = mpi_groups(options.mesh);
      const auto world = mpi().make_world({comm::Backend::mpi, 60});
      comm::NcclOptions of_nccl;
      of_nccl.registration = comm::NcclRegistration::windows;
      comm::NcclGroups parent(nccl->library(), mpi(), *world, kernels.device(), of_nccl);
      for (auto* group : {&groups.tensor, &groups.pipeline, &groups.data, &groups.embedding}) {
        *group = parent.split(std::move(*group));
      }
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
  if (mpi().world_size() == 1) return;
  auto options = options_for(layout::Mesh::of(1, mpi().world_size() / 2, 2), 1);
  options.model.num_hidden_layers = 2;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  const auto plain = std::exchange(nccl->collectives, {});
  options.record = engine::RecordSteps::yes;
  CHECK(train_over_nccl(*nccl, options) == expected);
  CHECK(plain.in_known_memory > 0);
  CHECK(nccl->collectives.in_known_memory == plain.in_known_memory);
  CHECK(nccl->collectives.elsewhere == 0);
  CHECK(nccl->alive() == 0);
  CHECK(nccl->aborted == 0);
}

TEST_CASE("streams that run in any order that events allow change no bit") {
  auto options = options_for(mesh_of_world(), 1);
  options.model.num_hidden_layers = 2;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  const auto rank = static_cast<std::uint64_t>(mpi().world_rank().value());
  CHECK(train_over_nccl(*nccl, options, {Haste::Kind::eager}) == expected);
  for (const std::uint64_t seed : {1U, 2U}) {
    still_going("another order");
    CHECK(train_over_nccl(*nccl, options, {Haste::Kind::mixed, 100 * seed + rank}) == expected);
  }
}

namespace {

/// The same over groups of a forgetful device. Its memory outlives all that is still under way.
std::vector<Observed> train_forgetfully(FakeNccl& nccl, const engine::EngineOptions& options,
                                        Forgets what) {
  DetachedKernels kernels(device::make_cpu_kernels(1));
  Forgetful forgetful(kernels.device(), what);
  auto memory = engine::Memory::on(kernels.device(), engine::measure(options));
  auto groups = mpi_groups(options.mesh);
  const auto world = mpi().make_world({comm::Backend::mpi, 60});
  comm::NcclGroups parent(nccl.library(), mpi(), *world, forgetful);
  for (auto* group : {&groups.tensor, &groups.pipeline, &groups.data, &groups.embedding}) {
    *group = parent.split(std::move(*group));
  }
  return train_in(memory, options, groups, kernels);
}

}  // namespace

TEST_CASE("a device that does not follow its groups, or they it, is found out") {
  if (mpi().world_size() == 1) return;
  const auto forgets = GENERATE(Forgets::that_it_follows_groups, Forgets::that_groups_follow_it);
  auto options = options_for(mesh_of_world(), 0);
  options.model.num_hidden_layers = 2;
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const auto expected = train_over_nccl(*nccl, options);
  const auto found = train_forgetfully(*nccl, options, forgets);
  CHECK(!(found == expected));
}
