// SPDX-License-Identifier: Apache-2.0
// Memory that NCCL is told of: once for each communicator, and no longer than either lives. The
// stand-in throws at what a GPU would punish later.
#include "trireme/comm/nccl_memory.hpp"

#include "mpi/behaviour/group_fixture.hpp"
#include "support/simulated_gpu/device.hpp"

#include <chrono>
#include <stdexcept>

using namespace trireme;
using namespace trireme::testing;
using comm::NcclRegistration;
using comm::Offsets;
using device::Purpose;

namespace {

std::vector<base::Rank> everybody() {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < mpi().world_size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

const std::vector<Purpose> shared_purposes{Purpose::parameters, Purpose::gradients};

/// A group of all ranks on a device, and gradients of NCCL's or of the device.
struct Stage {
  explicit Stage(NcclRegistration registration) {
    comm::NcclOptions options;
    options.timeout_seconds = 30;
    options.registration = registration;
    groups = std::make_unique<comm::NcclGroups>(nccl->library(), mpi(), *world, device, options);
    group = groups->split(mpi().make_world({comm::Backend::mpi, 30}));
    shared = comm::with_nccl_memory(device, nccl->library(), shared_purposes);
  }

  std::unique_ptr<FakeNccl> nccl = make_fake_nccl(mpi(), everybody());
  std::unique_ptr<ProcessGroup> world = mpi().make_world({comm::Backend::mpi, 30});
  SimulatedDevice device{Haste{Haste::Kind::lazy, 0}};
  std::unique_ptr<device::Device> shared;
  std::unique_ptr<comm::NcclGroups> groups;
  std::unique_ptr<ProcessGroup> group;
};

/// Whether a sum of ones in this memory is the number of ranks.
bool sums_up(Stage& stage, const Tensor& values) {
  const std::vector<float> ones(static_cast<std::size_t>(values.element_count()), 1.0F);
  stage.device.copy_in(ones.data(), values);
  stage.group->all_reduce(values);
  std::vector<float> sums(ones.size());
  stage.device.copy_out(values, sums.data());
  stage.device.synchronize();
  return sums == std::vector<float>(ones.size(), static_cast<float>(stage.group->size()));
}

}  // namespace

TEST_CASE("buffers are known while they are registered, and sums in them stay right") {
  for (const auto registration :
       {NcclRegistration::none, NcclRegistration::buffers, NcclRegistration::windows}) {
    Stage stage(registration);
    auto arena = stage.device.arena(Purpose::gradients, 1 << 16);
    const auto values = arena.allocate(DType::f32, {2520});
    {
      const auto known = stage.group->register_memory(values, Offsets::same);
      CHECK((known == nullptr) == (registration == NcclRegistration::none));
      CHECK(sums_up(stage, values));
      CHECK(sums_up(stage, values.slice(0, 0, 17)));
    }
    // The device's own memory is no window.
    CHECK(stage.nccl->windows_registered == 0);
    CHECK(stage.nccl->buffers_registered == (registration == NcclRegistration::none ? 0 : 1));
    CHECK(stage.group->register_memory(values.slice(0, 0, 0), Offsets::same) == nullptr);
  }
}

TEST_CASE("parameters and gradients that NCCL allocates are windows, and other arenas the GPU's") {
  Stage stage(NcclRegistration::windows);
  REQUIRE(stage.shared != nullptr);
  {
    auto gradients = stage.shared->arena(Purpose::gradients, 1 << 16);
    auto parameters = stage.shared->arena(Purpose::parameters, 5000);
    const auto workspace = stage.shared->arena(Purpose::workspace, 1 << 16);
    const auto empty = stage.shared->arena(Purpose::gradients, 0);
    CHECK(stage.nccl->allocations() == 2);
    const auto values = gradients.allocate(DType::f32, {2520});
    const auto weights = parameters.allocate(DType::f32, {1000});
    const auto first = stage.group->register_memory(values, Offsets::same);
    const auto second = stage.group->register_memory(weights, Offsets::same);
    CHECK(stage.nccl->windows_registered == 2);
    CHECK(stage.nccl->buffers_registered == 0);
    CHECK(sums_up(stage, values));
    CHECK(sums_up(stage, weights));
    // No window begins inside an allocation.
    const auto rest = gradients.allocate(DType::f32, {1000});
    const auto third = stage.group->register_memory(rest, Offsets::same);
    CHECK(stage.nccl->windows_registered == 2);
    CHECK(stage.nccl->buffers_registered == 1);
  }
  CHECK(stage.nccl->allocations() == 0);
}

TEST_CASE("parts of different lengths lie in registered memory as equal ones do") {
  Stage stage(NcclRegistration::windows);
  auto arena = stage.shared->arena(Purpose::gradients, 1 << 16);
  const auto values = arena.allocate(DType::f32, {2520});
  const auto known = stage.group->register_memory(values, Offsets::same);
  REQUIRE(stage.nccl->windows_registered == 1);
  const int size = stage.group->size();
  comm::Cuts cuts{0};
  for (int rank = 0; rank < size; ++rank) cuts.push_back(cuts.back() + rank);
  cuts.back() = 2520;
  const std::vector<float> ones(2520, 1.0F);
  stage.device.copy_in(ones.data(), values);
  const auto self = static_cast<std::size_t>(stage.group->rank());
  const auto part = values.slice(0, cuts[self], cuts[self + 1] - cuts[self]);
  stage.group->reduce_scatter(values, part, cuts);
  stage.group->all_gather(part, values, cuts);
  std::vector<float> sums(2520);
  stage.device.copy_out(values, sums.data());
  stage.device.synchronize();
  CHECK(sums == std::vector<float>(2520, static_cast<float>(size)));
  CHECK(stage.nccl->collectives.elsewhere == 0);
  CHECK(stage.nccl->collectives.in_known_memory > 0);
}

TEST_CASE("an older library gets buffers, or nothing") {
  Stage stage(NcclRegistration::windows);
  auto library = stage.nccl->library();
  auto api = *library.api;
  api.register_window = nullptr;
  library.api = &api;
  comm::NcclOptions options{30};
  options.registration = NcclRegistration::windows;
  comm::NcclGroups groups(library, mpi(), *stage.world, stage.device, options);
  const auto group = groups.split(mpi().make_world({comm::Backend::mpi, 30}));
  auto arena = stage.shared->arena(Purpose::gradients, 4096);
  const auto values = arena.allocate(DType::f32, {1000});
  CHECK(group->register_memory(values, Offsets::same) != nullptr);
  CHECK(stage.nccl->buffers_registered == 1);
  api.register_buffer = nullptr;
  CHECK(group->register_memory(values, Offsets::same) == nullptr);
  api.allocate = nullptr;
  CHECK(comm::with_nccl_memory(stage.device, library, shared_purposes) == nullptr);
}

TEST_CASE("a registration that NCCL refuses ends in an error that names it") {
  Stage stage(NcclRegistration::buffers);
  stage.nccl->faults.refused_call = "ncclCommRegister";
  auto arena = stage.device.arena(Purpose::gradients, 4096);
  const auto values = arena.allocate(DType::f32, {1000});
  CHECK_THROWS_WITH(stage.group->register_memory(values, Offsets::same),
                    Catch::Contains("register_memory number 1 of process group 'world'") &&
                        Catch::Contains("ncclCommRegister"));
}

TEST_CASE("memory that cannot be allocated is named with its purpose") {
  Stage stage(NcclRegistration::windows);
  stage.nccl->faults.refused_call = "ncclMemAlloc";
  CHECK_THROWS_WITH(
      stage.shared->arena(Purpose::gradients, 4096),
      Catch::Contains("for gradients") && Catch::Contains("comm.register_buffers = buffers"));
}

TEST_CASE(
    "the stand-in throws at memory that is registered twice, used afterwards or left behind") {
  Stage stage(NcclRegistration::buffers);
  auto arena = stage.device.arena(Purpose::gradients, 1 << 16);
  const auto values = arena.allocate(DType::f32, {2520});
  {
    const auto known = stage.group->register_memory(values, Offsets::same);
    CHECK_THROWS_WITH(stage.group->register_memory(values.slice(0, 5, 7), Offsets::same),
                      Catch::Contains("told twice"));
  }
  CHECK_THROWS_WITH(stage.group->all_reduce(values), Catch::Contains("was taken from it"));
  // A communicator that ends with memory: through the table, because destructors do not throw.
  const auto& api = *stage.nccl->library().api;
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
  Stage stage(NcclRegistration::windows);
  const bool alone = mpi().world_size() == 1;
  auto even = stage.shared->arena(Purpose::gradients, 1 << 16);
  // GPUs that address all members' memory by one offset would meet strangers' numbers.
  CHECK(stage.group->register_memory(even.whole(), Offsets::own) == nullptr);
  CHECK(stage.nccl->buffers_registered + stage.nccl->windows_registered == 0);
  const auto rank = static_cast<std::size_t>(mpi().world_rank().value());
  auto uneven = stage.shared->arena(Purpose::parameters, (rank + 1) << 16);
  const auto values = uneven.allocate(DType::f32, {2520});
  const auto known = stage.group->register_memory(uneven.whole(), Offsets::same);
  CHECK(stage.nccl->windows_registered == (alone ? 1 : 0));
  CHECK(stage.nccl->buffers_registered == (alone ? 0 : 1));
  CHECK(sums_up(stage, values));
  // Nor is it one where a single member's memory is the GPU's own.
  auto own = stage.device.arena(Purpose::gradients, 1 << 16);
  auto& mixed = rank == 0 ? own : even;
  const auto other = stage.group->register_memory(mixed.whole(), Offsets::same);
  CHECK(stage.nccl->windows_registered == (alone ? 1 : 0));
}

TEST_CASE("the stand-in throws where members differ in what they registered, or in their offsets") {
  if (mpi().world_size() == 1) return;
  const bool first = mpi().world_rank().value() == 0;
  {
    Stage stage(NcclRegistration::buffers);
    auto arena = stage.device.arena(Purpose::gradients, 1 << 16);
    const auto values = arena.allocate(DType::f32, {2520});
    const auto known = first ? stage.group->register_memory(arena.whole(), Offsets::own) : nullptr;
    CHECK_THROWS_WITH(stage.group->all_reduce(values), Catch::Contains("and not another's"));
  }
  Stage stage(NcclRegistration::windows);
  auto arena = stage.shared->arena(Purpose::gradients, 1 << 16);
  const auto values = arena.allocate(DType::f32, {5040});
  const auto known = stage.group->register_memory(arena.whole(), Offsets::same);
  REQUIRE(stage.nccl->windows_registered == 1);
  CHECK_THROWS_WITH(stage.group->all_reduce(values.slice(0, first ? 0 : 64, 2520)),
                    Catch::Contains("different offsets"));
}

namespace {

/// One message to each neighbour in a ring of all ranks, from one half of the memory to the other.
std::vector<comm::Work> start_messages(ProcessGroup& group, const Tensor& values, int tag) {
  const int size = group.size();
  const auto half = values.dim(0) / 2;
  std::vector<comm::Work> works;
  works.push_back(group.start_send(values.slice(0, 0, half), (group.rank() + 1) % size, tag));
  works.push_back(
      group.start_receive(values.slice(0, half, half), (group.rank() + size - 1) % size, tag));
  return works;
}

void exchange_messages(Stage& stage, const Tensor& values, int tag) {
  const auto half = static_cast<std::size_t>(values.dim(0) / 2);
  const auto mine = static_cast<float>(100 * tag + stage.group->rank());
  const std::vector<float> numbers(2 * half, mine);
  stage.device.copy_in(numbers.data(), values);
  stage.device.synchronize();
  for (auto& work : start_messages(*stage.group, values, tag)) work.wait();
  std::vector<float> found(2 * half);
  stage.device.copy_out(values, found.data());
  stage.device.synchronize();
  const int size = stage.group->size();
  CHECK(found[half] == static_cast<float>(100 * tag + (stage.group->rank() + size - 1) % size));
}

}  // namespace

TEST_CASE("messages' communicators hear of memory when they are made, and of more afterwards") {
  if (mpi().world_size() == 1) return;
  Stage stage(NcclRegistration::buffers);
  auto arena = stage.device.arena(Purpose::communication, 1 << 14);
  auto later = stage.device.arena(Purpose::communication, 1 << 14);
  const auto values = arena.allocate(DType::f32, {1000});
  const auto others = later.allocate(DType::f32, {1000});
  auto known = stage.group->register_for_messages(arena.whole());
  REQUIRE(known != nullptr);
  CHECK(stage.nccl->buffers_registered == 0);
  exchange_messages(stage, values, 1);
  // To one neighbour and from another: each direction has a communicator.
  CHECK(stage.nccl->buffers_registered == 2);
  CHECK(stage.nccl->messages.in_known_memory == 2);
  const auto more = stage.group->register_for_messages(later.whole());
  CHECK(stage.nccl->buffers_registered == 2);
  exchange_messages(stage, others, 2);
  CHECK(stage.nccl->buffers_registered == 4);
  known.reset();
  exchange_messages(stage, others, 3);
  CHECK(stage.nccl->messages.in_known_memory == 6);
  CHECK(stage.nccl->messages.elsewhere == 0);
  // In a ring of more some would wait for those who have thrown.
  if (mpi().world_size() > 2) return;
  CHECK_THROWS_WITH(exchange_messages(stage, values, 4), Catch::Contains("was taken from it"));
}

TEST_CASE("a message's communicator that refuses memory names message and call") {
  if (mpi().world_size() != 2) return;
  Stage stage(NcclRegistration::buffers);
  stage.nccl->faults.refused_call = "ncclCommRegister";
  auto arena = stage.device.arena(Purpose::communication, 1 << 14);
  const auto values = arena.allocate(DType::f32, {1000});
  const auto known = stage.group->register_for_messages(arena.whole());
  CHECK_THROWS_WITH(
      exchange_messages(stage, values, 1),
      Catch::Contains("of process group 'world'") && Catch::Contains("ncclCommRegister"));
}

namespace {

/// As an engine dies: what tells NCCL of memory goes before what is under way in it.
struct Dying {
  std::vector<comm::Work> works;
  std::unique_ptr<comm::Registration> of_collectives;
  std::unique_ptr<comm::Registration> of_messages;
};

}  // namespace

TEST_CASE("after a failure communicators are aborted before memory that they work in goes") {
  if (mpi().world_size() == 1) return;
  const bool messages = GENERATE(false, true);
  CAPTURE(messages);
  Stage stage(NcclRegistration::buffers);
  auto arena = stage.device.arena(Purpose::communication, 1 << 14);
  const auto values = arena.allocate(DType::f32, {1000});
  try {
    Dying dying;
    dying.of_collectives = stage.group->register_memory(arena.whole(), Offsets::own);
    dying.of_messages = stage.group->register_for_messages(arena.whole());
    exchange_messages(stage, values, 1);
    stage.nccl->faults.never_ends = true;
    if (messages) {
      dying.works = start_messages(*stage.group, values, 2);
    } else {
      dying.works.push_back(stage.group->start_all_reduce(values, comm::ReduceOp::sum));
    }
    const auto begin = std::chrono::steady_clock::now();
    while (std::chrono::steady_clock::now() - begin < std::chrono::milliseconds(300)) {
      for (auto& work : dying.works) CHECK_FALSE(work.poll());
    }
    throw std::runtime_error("something else");
  } catch (const std::runtime_error& error) {
    CHECK(std::string(error.what()) == "something else");
  }
  // Communicators of both directions are aborted, or all; those in which nothing was under way
  // forgot the memory instead.
  CHECK(stage.nccl->aborted == (messages ? 2 : 1));
  stage.world->barrier();
}
