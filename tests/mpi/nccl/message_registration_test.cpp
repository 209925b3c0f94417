// SPDX-License-Identifier: Apache-2.0
// Memory that communicators of messages are told of, which are made when they are needed first.
#include "mpi/nccl/registration_fixture.hpp"

#include <chrono>
#include <stdexcept>

using namespace trireme;
using namespace trireme::testing;
using comm::NcclRegistration;
using comm::Offsets;
using device::Purpose;

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

void exchange_messages(RegistrationFixture& fixture, const Tensor& values, int tag) {
  const auto half = static_cast<std::size_t>(values.dim(0) / 2);
  const auto mine = static_cast<float>(100 * tag + fixture.group->rank());
  const std::vector<float> numbers(2 * half, mine);
  fixture.device.copy_in(numbers.data(), values);
  fixture.device.synchronize();
  for (auto& work : start_messages(*fixture.group, values, tag)) work.wait();
  std::vector<float> found(2 * half);
  fixture.device.copy_out(values, found.data());
  fixture.device.synchronize();
  const int size = fixture.group->size();
  CHECK(found[half] == static_cast<float>(100 * tag + (fixture.group->rank() + size - 1) % size));
}

}  // namespace

TEST_CASE("messages' communicators hear of memory when they are made, and of more afterwards") {
  if (mpi().world_size() == 1) return;
  RegistrationFixture fixture(NcclRegistration::buffers);
  auto arena = fixture.device.arena(Purpose::communication, 1 << 14);
  auto later = fixture.device.arena(Purpose::communication, 1 << 14);
  const auto values = arena.allocate(DType::f32, {1000});
  const auto others = later.allocate(DType::f32, {1000});
  auto known = fixture.group->register_for_messages(arena.whole());
  REQUIRE(known != nullptr);
  CHECK(fixture.nccl->buffers_registered == 0);
  exchange_messages(fixture, values, 1);
  // To one neighbour and from another: each direction has a communicator.
  CHECK(fixture.nccl->buffers_registered == 2);
  CHECK(fixture.nccl->messages.in_known_memory == 2);
  const auto more = fixture.group->register_for_messages(later.whole());
  CHECK(fixture.nccl->buffers_registered == 2);
  exchange_messages(fixture, others, 2);
  CHECK(fixture.nccl->buffers_registered == 4);
  known.reset();
  exchange_messages(fixture, others, 3);
  CHECK(fixture.nccl->messages.in_known_memory == 6);
  CHECK(fixture.nccl->messages.elsewhere == 0);
  // In a ring of more some would wait for those who have thrown.
  if (mpi().world_size() > 2) return;
  CHECK_THROWS_WITH(exchange_messages(fixture, values, 4), Catch::Contains("was taken from it"));
}

TEST_CASE("a message's communicator that refuses memory names message and call") {
  if (mpi().world_size() != 2) return;
  RegistrationFixture fixture(NcclRegistration::buffers);
  fixture.nccl->faults.refused_call = "ncclCommRegister";
  auto arena = fixture.device.arena(Purpose::communication, 1 << 14);
  const auto values = arena.allocate(DType::f32, {1000});
  const auto known = fixture.group->register_for_messages(arena.whole());
  CHECK_THROWS_WITH(
      exchange_messages(fixture, values, 1),
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
  RegistrationFixture fixture(NcclRegistration::buffers);
  auto arena = fixture.device.arena(Purpose::communication, 1 << 14);
  const auto values = arena.allocate(DType::f32, {1000});
  try {
    Dying dying;
    dying.of_collectives = fixture.group->register_memory(arena.whole(), Offsets::own);
    dying.of_messages = fixture.group->register_for_messages(arena.whole());
    exchange_messages(fixture, values, 1);
    fixture.nccl->faults.never_ends = true;
    if (messages) {
      dying.works = start_messages(*fixture.group, values, 2);
    } else {
      dying.works.push_back(fixture.group->start_all_reduce(values, comm::ReduceOp::sum));
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
  CHECK(fixture.nccl->aborted == (messages ? 2 : 1));
  fixture.world->barrier();
}
