// SPDX-License-Identifier: Apache-2.0
// Memory that NCCL is told of: once for each communicator, and no longer than either lives. The
// stand-in throws at what a GPU would punish later.
#include "mpi/nccl/registration_fixture.hpp"

using namespace trireme;
using namespace trireme::testing;
using comm::NcclRegistration;
using comm::Offsets;
using device::Purpose;

TEST_CASE("buffers are known while they are registered, and sums in them stay right") {
  for (const auto registration :
       {NcclRegistration::none, NcclRegistration::buffers, NcclRegistration::windows}) {
    RegistrationFixture fixture(registration);
    auto arena = fixture.device.arena(Purpose::gradients, 1 << 16);
    const auto values = arena.allocate(DType::f32, {2520});
    {
      const auto known = fixture.group->register_memory(values, Offsets::same);
      CHECK((known == nullptr) == (registration == NcclRegistration::none));
      CHECK(sums_up(fixture, values));
      CHECK(sums_up(fixture, values.slice(0, 0, 17)));
    }
    // The device's own memory is no window.
    CHECK(fixture.nccl->windows_registered == 0);
    CHECK(fixture.nccl->buffers_registered == (registration == NcclRegistration::none ? 0 : 1));
    CHECK(fixture.group->register_memory(values.slice(0, 0, 0), Offsets::same) == nullptr);
  }
}

TEST_CASE("parameters and gradients that NCCL allocates are windows, and other arenas the GPU's") {
  RegistrationFixture fixture(NcclRegistration::windows);
  REQUIRE(fixture.shared != nullptr);
  {
    auto gradients = fixture.shared->arena(Purpose::gradients, 1 << 16);
    auto parameters = fixture.shared->arena(Purpose::parameters, 5000);
    const auto workspace = fixture.shared->arena(Purpose::workspace, 1 << 16);
    const auto empty = fixture.shared->arena(Purpose::gradients, 0);
    CHECK(fixture.nccl->allocations() == 2);
    const auto values = gradients.allocate(DType::f32, {2520});
    const auto weights = parameters.allocate(DType::f32, {1000});
    const auto first = fixture.group->register_memory(values, Offsets::same);
    const auto second = fixture.group->register_memory(weights, Offsets::same);
    CHECK(fixture.nccl->windows_registered == 2);
    CHECK(fixture.nccl->buffers_registered == 0);
    CHECK(sums_up(fixture, values));
    CHECK(sums_up(fixture, weights));
    // No window begins inside an allocation.
    const auto rest = gradients.allocate(DType::f32, {1000});
    const auto third = fixture.group->register_memory(rest, Offsets::same);
    CHECK(fixture.nccl->windows_registered == 2);
    CHECK(fixture.nccl->buffers_registered == 1);
  }
  CHECK(fixture.nccl->allocations() == 0);
}

TEST_CASE("parts of different lengths lie in registered memory as equal ones do") {
  RegistrationFixture fixture(NcclRegistration::windows);
  auto arena = fixture.shared->arena(Purpose::gradients, 1 << 16);
  const auto values = arena.allocate(DType::f32, {2520});
  const auto known = fixture.group->register_memory(values, Offsets::same);
  REQUIRE(fixture.nccl->windows_registered == 1);
  const int size = fixture.group->size();
  comm::Cuts cuts{0};
  for (int rank = 0; rank < size; ++rank) cuts.push_back(cuts.back() + rank);
  cuts.back() = 2520;
  const std::vector<float> ones(2520, 1.0F);
  fixture.device.copy_in(ones.data(), values);
  const auto self = static_cast<std::size_t>(fixture.group->rank());
  const auto part = values.slice(0, cuts[self], cuts[self + 1] - cuts[self]);
  fixture.group->reduce_scatter(values, part, cuts);
  fixture.group->all_gather(part, values, cuts);
  std::vector<float> sums(2520);
  fixture.device.copy_out(values, sums.data());
  fixture.device.synchronize();
  CHECK(sums == std::vector<float>(2520, static_cast<float>(size)));
  CHECK(fixture.nccl->collectives.elsewhere == 0);
  CHECK(fixture.nccl->collectives.in_known_memory > 0);
}

TEST_CASE("an older library gets buffers, or nothing") {
  RegistrationFixture fixture(NcclRegistration::windows);
  auto library = fixture.nccl->library();
  auto api = *library.api;
  api.register_window = nullptr;
  library.api = &api;
  comm::NcclOptions options{30};
  options.registration = NcclRegistration::windows;
  comm::NcclGroups groups(library, mpi(), *fixture.world, fixture.device, options);
  const auto group = groups.split(mpi().make_world({comm::Backend::mpi, 30}));
  auto arena = fixture.shared->arena(Purpose::gradients, 4096);
  const auto values = arena.allocate(DType::f32, {1000});
  CHECK(group->register_memory(values, Offsets::same) != nullptr);
  CHECK(fixture.nccl->buffers_registered == 1);
  api.register_buffer = nullptr;
  CHECK(group->register_memory(values, Offsets::same) == nullptr);
  api.allocate = nullptr;
  CHECK(comm::with_nccl_memory(fixture.device, library, shared_purposes) == nullptr);
}

TEST_CASE("a registration that NCCL refuses ends in an error that names it") {
  RegistrationFixture fixture(NcclRegistration::buffers);
  fixture.nccl->faults.refused_call = "ncclCommRegister";
  auto arena = fixture.device.arena(Purpose::gradients, 4096);
  const auto values = arena.allocate(DType::f32, {1000});
  CHECK_THROWS_WITH(fixture.group->register_memory(values, Offsets::same),
                    Catch::Contains("register_memory number 1 of process group 'world'") &&
                        Catch::Contains("ncclCommRegister"));
}

TEST_CASE("memory that cannot be allocated is named with its purpose") {
  RegistrationFixture fixture(NcclRegistration::windows);
  fixture.nccl->faults.refused_call = "ncclMemAlloc";
  CHECK_THROWS_WITH(
      fixture.shared->arena(Purpose::gradients, 4096),
      Catch::Contains("for gradients") && Catch::Contains("comm.register_buffers = buffers"));
}

TEST_CASE(
    "the stand-in throws at memory that is registered twice, used afterwards or left behind") {
  RegistrationFixture fixture(NcclRegistration::buffers);
  auto arena = fixture.device.arena(Purpose::gradients, 1 << 16);
  const auto values = arena.allocate(DType::f32, {2520});
  {
    const auto known = fixture.group->register_memory(values, Offsets::same);
    CHECK_THROWS_WITH(fixture.group->register_memory(values.slice(0, 5, 7), Offsets::same),
                      Catch::Contains("told twice"));
  }
  CHECK_THROWS_WITH(fixture.group->all_reduce(values), Catch::Contains("was taken from it"));
  // A communicator that ends with memory: through the table, because destructors do not throw.
  const auto& api = *fixture.nccl->library().api;
  comm::nccl::UniqueId id;
  comm::nccl::Config config;
  config.blocking = 0;
  comm::nccl::Comm* raw = nullptr;
  api.get_unique_id(&id);
  api.init_rank(&raw, 1, id, 0, &config);
  auto state = comm::nccl::Result::in_progress;
  while (state != comm::nccl::Result::success) api.get_async_error(raw, &state);
  void* handle = nullptr;
  api.register_buffer(raw, values.raw(), 64, &handle);
  CHECK_THROWS_WITH(api.finalize(raw), Catch::Contains("still knows of memory"));
  api.deregister_buffer(raw, handle);
  CHECK_THROWS_WITH(api.deregister_buffer(raw, handle), Catch::Contains("no such memory"));
  api.abort(raw);
}

TEST_CASE("memory that ranks fill otherwise, or have more of, is no window") {
  RegistrationFixture fixture(NcclRegistration::windows);
  const bool alone = mpi().world_size() == 1;
  auto even = fixture.shared->arena(Purpose::gradients, 1 << 16);
  // GPUs that address all members' memory by one offset would meet strangers' numbers.
  CHECK(fixture.group->register_memory(even.whole(), Offsets::own) == nullptr);
  CHECK(fixture.nccl->buffers_registered + fixture.nccl->windows_registered == 0);
  const auto rank = static_cast<std::size_t>(mpi().world_rank().value());
  auto uneven = fixture.shared->arena(Purpose::parameters, (rank + 1) << 16);
  const auto values = uneven.allocate(DType::f32, {2520});
  const auto known = fixture.group->register_memory(uneven.whole(), Offsets::same);
  CHECK(fixture.nccl->windows_registered == (alone ? 1 : 0));
  CHECK(fixture.nccl->buffers_registered == (alone ? 0 : 1));
  CHECK(sums_up(fixture, values));
  // Nor is it one where a single member's memory is the GPU's own.
  auto own = fixture.device.arena(Purpose::gradients, 1 << 16);
  auto& mixed = rank == 0 ? own : even;
  const auto other = fixture.group->register_memory(mixed.whole(), Offsets::same);
  CHECK(fixture.nccl->windows_registered == (alone ? 1 : 0));
}

TEST_CASE("the stand-in throws where members differ in what they registered, or in their offsets") {
  if (mpi().world_size() == 1) return;
  const bool first = mpi().world_rank().value() == 0;
  {
    RegistrationFixture fixture(NcclRegistration::buffers);
    auto arena = fixture.device.arena(Purpose::gradients, 1 << 16);
    const auto values = arena.allocate(DType::f32, {2520});
    const auto known =
        first ? fixture.group->register_memory(arena.whole(), Offsets::own) : nullptr;
    CHECK_THROWS_WITH(fixture.group->all_reduce(values), Catch::Contains("and not another's"));
  }
  RegistrationFixture fixture(NcclRegistration::windows);
  auto arena = fixture.shared->arena(Purpose::gradients, 1 << 16);
  const auto values = arena.allocate(DType::f32, {5040});
  const auto known = fixture.group->register_memory(arena.whole(), Offsets::same);
  REQUIRE(fixture.nccl->windows_registered == 1);
  CHECK_THROWS_WITH(fixture.group->all_reduce(values.slice(0, first ? 0 : 64, 2520)),
                    Catch::Contains("different offsets"));
}
