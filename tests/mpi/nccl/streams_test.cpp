// SPDX-License-Identifier: Apache-2.0
// Operations that are left to the device: the host does not wait for them, and hears of those that
// never end all the same.
#include "trireme/comm/peer_error.hpp"

#include "mpi/behaviour/group_fixture.hpp"
#include "support/simulated_gpu/device.hpp"

#include <chrono>
#include <functional>
#include <string>
#include <thread>

using namespace trireme;
using namespace trireme::testing;
using comm::nccl::Result;

namespace {

constexpr double deadline_seconds = 0.5;
constexpr std::int64_t count = 2520;

std::vector<base::Rank> everybody() {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < mpi().world_size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

/// A group of all ranks on a device with kernels, over a library that a test plays with.
struct Stage {
  explicit Stage(Haste haste, double timeout_seconds = 30)
      : meeting(world_of(Backend::mpi)),
        nccl(make_fake_nccl(mpi(), everybody())),
        world(mpi().make_world({comm::Backend::mpi, timeout_seconds})),
        kernels(device::make_reference_kernels(), haste) {
    groups = std::make_unique<comm::NcclGroups>(nccl->library(), mpi(), *world, device(),
                                                comm::NcclOptions{timeout_seconds, 256});
    group = groups->split(mpi().make_world({comm::Backend::mpi, timeout_seconds}));
    arena = device().arena(device::Purpose::communication, 1 << 17);
    values = arena.allocate(DType::f32, {count});
    others = arena.allocate(DType::f32, {count});
  }

  device::Device& device() { return kernels.device(); }
  std::vector<float> on_host(const Tensor& x) {
    device::HostMirror mirror(device());
    const auto here = mirror.of(x);
    mirror.fetch();
    return {here.f32(), here.f32() + here.element_count()};
  }

  std::unique_ptr<ProcessGroup> meeting;
  std::unique_ptr<FakeNccl> nccl;
  std::unique_ptr<ProcessGroup> world;
  SimulatedKernels kernels;
  std::unique_ptr<comm::NcclGroups> groups;
  std::unique_ptr<ProcessGroup> group;
  device::Arena arena = device::Arena::measuring(device::Purpose::communication);
  Tensor values;
  Tensor others;
};

/// The words of the PeerError that `call` must end in, after at least so long and not for ever.
std::string failure_of(const std::function<void()>& call, double at_least_seconds) {
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  try {
    call();
    FAIL("nothing failed");
  } catch (const comm::PeerError& error) {
    text = error.what();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() >= at_least_seconds);
  CHECK(took.count() < 20);
  return text;
}

Haste any_haste() {
  const auto kind = GENERATE(Haste::Kind::lazy, Haste::Kind::eager, Haste::Kind::mixed);
  const auto seed = kind == Haste::Kind::mixed ? GENERATE(range(1, 6)) : 0;
  return {kind, static_cast<std::uint64_t>(10 * seed + mpi().world_rank().value())};
}

}  // namespace

TEST_CASE("what is issued behind a joined collective finds its result, and the host goes on") {
  Stage stage(any_haste());
  const auto ranks = static_cast<float>(stage.group->size());
  stage.kernels.issue(device::Fill{stage.values, 1.0F});
  const auto waits = stage.device().waits();
  float expected = 1.0F;
  for (int round = 0; round < 4; ++round) {
    stage.group->start_all_reduce(stage.values, ReduceOp::sum).wait_on_stream();
    stage.kernels.issue(device::Copy{stage.values, stage.others});
    stage.kernels.issue(device::Add{stage.values, stage.values, stage.values});
    // Reads the copy while the original is overwritten behind it.
    stage.group->start_all_reduce(stage.others, ReduceOp::max).wait_on_stream();
    stage.kernels.issue(device::Add{stage.values, stage.others, stage.values});
    expected = expected * ranks * 3.0F;
  }
  CHECK(stage.device().waits() == waits);
  CHECK(stage.on_host(stage.values) == std::vector<float>(count, expected));
  CHECK(stage.nccl->aborted == 0);
}

TEST_CASE("joined messages go round, and their buffers are used again") {
  if (mpi().world_size() < 2) return;
  Stage stage(any_haste());
  const int size = stage.group->size();
  const int rank = stage.group->rank();
  const int next = (rank + 1) % size;
  const int previous = (rank + size - 1) % size;
  const auto waits = stage.device().waits();
  stage.kernels.issue(device::Fill{stage.values, static_cast<float>(rank)});
  for (int round = 0; round < size; ++round) {
    auto receive = stage.group->start_receive(stage.others, previous, round);
    auto send = stage.group->start_send(stage.values, next, round);
    receive.wait_on_stream();
    send.wait_on_stream();
    stage.kernels.issue(device::Copy{stage.others, stage.values});
    stage.kernels.issue(device::Fill{stage.others, -1.0F});
  }
  CHECK(stage.device().waits() == waits);
  CHECK(stage.on_host(stage.values) == std::vector<float>(count, static_cast<float>(rank)));
}

TEST_CASE("a joined collective that never ends is named by whoever waits for the device") {
  Stage stage(Haste{}, deadline_seconds);
  stage.kernels.issue(device::Fill{stage.values, 1.0F});
  stage.nccl->faults.never_ends = true;
  stage.group->start_all_reduce(stage.values, ReduceOp::sum).wait_on_stream();
  stage.kernels.issue(device::Add{stage.values, stage.values, stage.values});
  stage.group->start_broadcast(stage.values, 0).wait_on_stream();
  const auto text = failure_of([&] { stage.device().synchronize(); }, deadline_seconds);
  CHECK_THAT(text, Catch::Contains("all_reduce number 1 of process group 'world'"));
  CHECK_THAT(text, Catch::Contains("comm.timeout = 500.0 ms"));
  CHECK(stage.nccl->aborted == 1);
  CHECK_THROWS_AS(stage.group->all_reduce(stage.values), base::Error);
  // Nothing holds the device up any more.
  stage.device().synchronize();
  stage.meeting->barrier();
}

TEST_CASE("a joined collective that never ends is named by whoever waits for the host's peers") {
  if (mpi().world_size() < 2) return;
  Stage stage(Haste{}, deadline_seconds);
  const auto patient = mpi().make_world({comm::Backend::mpi, 30});
  stage.kernels.issue(device::Fill{stage.values, 1.0F});
  stage.nccl->faults.never_ends = true;
  stage.group->start_all_reduce(stage.values, ReduceOp::sum).wait_on_stream();
  float number = 0;
  const auto from = (stage.group->rank() + 1) % stage.group->size();
  auto never_sent = patient->start_receive(Tensor(&number, DType::f32, {1}), from, 5);
  const auto text = failure_of([&] { never_sent.wait(); }, deadline_seconds);
  CHECK_THAT(text, Catch::Contains("all_reduce number 1 of process group 'world'"));
  CHECK(stage.nccl->aborted == 1);
  stage.meeting->barrier();
  // The message that nobody meant comes after all.
  auto sent =
      patient->start_send(Tensor(&number, DType::f32, {1}),
                          (stage.group->rank() + stage.group->size() - 1) % stage.group->size(), 5);
  never_sent.wait();
  sent.wait();
}

TEST_CASE("an error that NCCL meets in a joined collective ends the wait for the device at once") {
  Stage stage(Haste{});
  stage.kernels.issue(device::Fill{stage.values, 1.0F});
  stage.nccl->faults.never_ends = true;
  stage.group->start_all_reduce(stage.values, ReduceOp::sum).wait_on_stream();
  stage.nccl->faults.fails_later = Result::remote_error;
  const auto text = failure_of([&] { stage.kernels.sum(stage.values); }, 0);
  CHECK_THAT(text, Catch::Contains("all_reduce number 1 of process group 'world' failed in NCCL"));
  CHECK(stage.nccl->aborted == 1);
  stage.meeting->barrier();
}

TEST_CASE("a joined message that hangs on the device names its peer") {
  if (mpi().world_size() < 2 || mpi().world_size() > 2) return;
  Stage stage(Haste{}, deadline_seconds);
  stage.kernels.issue(device::Fill{stage.values, 1.0F});
  stage.nccl->faults.never_ends = true;
  const bool sends = stage.group->rank() == 0;
  auto work = sends ? stage.group->start_send(stage.values, 1, 2)
                    : stage.group->start_receive(stage.values, 0, 2);
  work.wait_on_stream();
  CHECK_THAT(failure_of([&] { stage.device().synchronize(); }, deadline_seconds),
             Catch::Contains(sends ? "send to rank 1 number 1 of process group 'world'"
                                   : "receive from rank 0 number 1 of process group 'world'"));
  CHECK(stage.nccl->aborted == 1);
  stage.meeting->barrier();
}

TEST_CASE("time that the device computes before a joined collective is not its peers'") {
  Stage stage(Haste{}, deadline_seconds);
  stage.kernels.issue(device::Fill{stage.values, 1.0F});
  // The host's thread stands in for the device's: nobody looks for longer than the deadline.
  stage.group->start_all_reduce(stage.values, ReduceOp::sum).wait_on_stream();
  std::this_thread::sleep_for(std::chrono::duration<double>(2 * deadline_seconds));
  CHECK(stage.on_host(stage.values) ==
        std::vector<float>(count, static_cast<float>(stage.group->size())));
  CHECK(stage.nccl->aborted == 0);
  stage.meeting->barrier();
}
