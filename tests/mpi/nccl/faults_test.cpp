// SPDX-License-Identifier: Apache-2.0
// A library that is late, fails, or never ends: each time an error that names what waited, on every
// rank, and nothing left on the device.
#include "trireme/comm/peer_error.hpp"

#include "mpi/behaviour/group_fixture.hpp"
#include "support/ras_server.hpp"
#include "support/simulated_gpu/device.hpp"

#include <chrono>
#include <thread>

using namespace trireme;
using namespace trireme::testing;
using comm::nccl::Result;

namespace {

constexpr double deadline_seconds = 0.5;

std::vector<base::Rank> everybody() {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < mpi().world_size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

/// A group of all ranks on a device, over a library that a test plays with.
struct Stage {
  explicit Stage(double timeout_seconds = deadline_seconds)
      : meeting(world_of(Backend::mpi)),
        nccl(make_fake_nccl(mpi(), everybody())),
        world(mpi().make_world({comm::Backend::mpi, timeout_seconds})),
        timeout(timeout_seconds) {}

  void make_group() {
    groups = std::make_unique<comm::NcclGroups>(nccl->library(), mpi(), *world, device,
                                                comm::NcclOptions{timeout, 256, ras_address});
    group = groups->split(mpi().make_world({comm::Backend::mpi, timeout}));
    arena = device.arena(device::Purpose::communication, 1 << 16);
    values = arena.allocate(DType::f32, {2520});
  }

  std::unique_ptr<ProcessGroup> meeting;
  std::unique_ptr<FakeNccl> nccl;
  std::unique_ptr<ProcessGroup> world;
  double timeout;
  std::string ras_address;
  SimulatedDevice device{Haste{Haste::Kind::lazy, 0}};
  std::unique_ptr<comm::NcclGroups> groups;
  std::unique_ptr<ProcessGroup> group;
  device::Arena arena = device::Arena::measuring(device::Purpose::communication);
  Tensor values;
};

/// The words of the PeerError that `call` must end in, after at least so long and not for ever.
std::string failure_of(const std::function<void()>& call, double at_least_seconds = 0) {
  const auto begin = std::chrono::steady_clock::now();
  std::string text;
  try {
    call();
    FAIL("nothing failed");
  } catch (const comm::PeerError& error) {
    CHECK(error.code() == base::ExitCode::peer);
    text = error.what();
  }
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() >= at_least_seconds);
  CHECK(took.count() < 20);
  return text;
}

bool contains(const std::string& text, const std::string& part) {
  CAPTURE(text, part);
  const bool found = text.find(part) != std::string::npos;
  CHECK(found);
  return found;
}

}  // namespace

TEST_CASE("a collective that never ends is ended at the deadline, and its communicator aborted") {
  Stage stage;
  stage.make_group();
  stage.nccl->faults.never_ends = true;
  const auto text = failure_of([&] { stage.group->all_reduce(stage.values); }, deadline_seconds);
  contains(text, "all_reduce number 1 of process group 'world'");
  contains(text, "comm.timeout = 500.0 ms");
  CHECK(stage.nccl->aborted == 1);
  CHECK_THROWS_AS(stage.group->all_reduce(stage.values), base::Error);
  stage.meeting->barrier();
}

TEST_CASE("an error that NCCL meets later ends the wait at once, in its words and ours") {
  for (const auto result : {Result::remote_error, Result::unhandled_cuda_error}) {
    Stage other(30);
    other.make_group();
    other.nccl->faults.never_ends = true;
    other.nccl->faults.fails_later = result;
    const auto text = failure_of([&] {
      other.group->reduce_scatter(other.values,
                                  other.values.slice(0, 0, 2520 / other.group->size()));
    });
    contains(text, "reduce_scatter number 1 of process group 'world' failed in NCCL 2.28.99");
    contains(text, "told by the stand-in");
    contains(text, result == Result::remote_error ? "read the logs of the other ranks"
                                                  : "NCCL_DEBUG=INFO");
    CHECK(other.nccl->aborted == 1);
    other.meeting->barrier();
  }
}

TEST_CASE("what NCCL's own watch finds goes into the verdict of a wait that was given up") {
  const auto size = std::to_string(mpi().world_size());
  RasServer ras(RasServer::answering(
      "Job summary\n===========\n      1          " + size + "            1          " + size +
      "        " + size +
      "\n\nCommunicators... (0.00s)\n\nErrors\n======\n\nINCOMPLETE\n"
      "  Missing communicator data from 1 job process\n\nWarnings\n========\n\n"));
  for (const bool fails : {false, true}) {
    CAPTURE(fails);
    Stage stage(fails ? 30 : deadline_seconds);
    stage.ras_address = ras.address();
    stage.make_group();
    stage.nccl->faults.never_ends = true;
    if (fails) stage.nccl->faults.fails_later = Result::remote_error;
    try {
      stage.group->all_reduce(stage.values);
      FAIL("nothing failed");
    } catch (const comm::PeerError& error) {
      CHECK(error.absence().account ==
            std::vector<std::string>{"RAS: INCOMPLETE",
                                     "RAS: Missing communicator data from 1 job process"});
    }
    stage.meeting->barrier();
  }
}

TEST_CASE("a watch that hangs holds up a failure no longer than its limit") {
  RasServer ras([](int socket) {
    while (!hear_line(socket).empty()) {
    }
  });
  Stage stage;
  stage.ras_address = ras.address();
  stage.make_group();
  stage.nccl->faults.never_ends = true;
  const auto begin = std::chrono::steady_clock::now();
  CHECK_THROWS_AS(stage.group->all_reduce(stage.values), comm::PeerError);
  const std::chrono::duration<double> took = std::chrono::steady_clock::now() - begin;
  CHECK(took.count() < 15);
  stage.meeting->barrier();
}

TEST_CASE("a call that NCCL refuses names the operation") {
  Stage stage(30);
  stage.make_group();
  stage.nccl->faults.refused_call = "ncclBroadcast";
  const auto text = failure_of([&] { stage.group->broadcast(stage.values, 0); });
  contains(text, "broadcast number 1 of process group 'world' failed in NCCL");
  contains(text, "internal error");
  stage.meeting->barrier();
}

TEST_CASE("a group of calls that NCCL refuses or never ends names the operation") {
  if (mpi().world_size() < 2) return;
  for (const bool refused : {true, false}) {
    CAPTURE(refused);
    Stage stage(refused ? 30 : deadline_seconds);
    stage.make_group();
    stage.nccl->faults.never_ends = !refused;
    if (refused) stage.nccl->faults.refused_call = "ncclReduce";
    comm::Cuts cuts(static_cast<std::size_t>(stage.group->size()) + 1, 2520);
    cuts.front() = 0;
    const bool owner = stage.group->rank() == 0;
    const auto part = owner ? stage.values : stage.values.slice(0, 0, 0);
    const auto text = failure_of([&] { stage.group->reduce_scatter(stage.values, part, cuts); });
    contains(text, "reduce_scatter number 1 of process group 'world'");
    contains(text, refused ? "internal error" : "comm.timeout = 500.0 ms");
    CHECK(stage.nccl->aborted == 1);
    stage.meeting->barrier();
  }
}

TEST_CASE("communicators that never come into being are given up at the deadline") {
  for (const bool parent : {true, false}) {
    CAPTURE(parent);
    Stage stage;
    stage.nccl->faults.never_meets = parent;
    stage.nccl->faults.never_splits = !parent;
    const auto text = failure_of([&] { stage.make_group(); }, deadline_seconds);
    contains(text, "make_group number");
    contains(text, "process group 'world'");
    CHECK(stage.nccl->aborted >= 1);
    stage.meeting->barrier();
  }
}

TEST_CASE("a rank that can make no id stops all before anybody waits for it") {
  Stage stage(30);
  if (mpi().world_rank().value() == 0) stage.nccl->faults.refused_call = "ncclGetUniqueId";
  try {
    stage.make_group();
    FAIL("the group was made");
  } catch (const base::Error& error) {
    CHECK(error.code() == base::ExitCode::peer);
    contains(error.what(), "rank 0 cannot meet others in NCCL");
    contains(error.what(), "comm.backend = staged");
  }
  stage.meeting->barrier();
}

TEST_CASE("what is late, but not too late, is waited for") {
  Stage stage(30);
  stage.make_group();
  stage.nccl->faults.late_seconds = mpi().world_rank().value() == 0 ? 0.2 : 0;
  const std::vector<float> ones(2520, 1.0F);
  stage.device.copy_in(ones.data(), stage.values);
  stage.group->all_reduce(stage.values);
  std::vector<float> sums(2520);
  stage.device.copy_out(stage.values, sums.data());
  stage.device.synchronize();
  CHECK(sums == std::vector<float>(2520, static_cast<float>(stage.group->size())));
  CHECK(stage.nccl->aborted == 0);
}

TEST_CASE("a message of another size is refused at both ends, and nothing waits on the device") {
  if (mpi().world_size() < 2) return;
  Stage stage(30);
  stage.make_group();
  const int rank = stage.group->rank();
  const auto few = stage.values.slice(0, 0, 3);
  if (rank == 0) CHECK_THROWS_WITH(stage.group->send(few, 1, 2), Catch::Contains("12 bytes"));
  if (rank == 1) {
    CHECK_THROWS_WITH(stage.group->receive(stage.values.slice(0, 0, 4), 0, 2),
                      Catch::Contains("16 bytes"));
  }
  stage.meeting->barrier();
}

TEST_CASE("a message that hangs on the device names its peer") {
  if (mpi().world_size() < 2) return;
  Stage stage;
  stage.make_group();
  stage.nccl->faults.never_ends = true;
  const int rank = stage.group->rank();
  if (rank == 0) {
    contains(failure_of([&] { stage.group->send(stage.values, 1, 2); }, deadline_seconds),
             "send to rank 1 number 1 of process group 'world'");
    CHECK(stage.nccl->aborted == 1);
  }
  if (rank == 1) {
    contains(failure_of([&] { stage.group->receive(stage.values, 0, 2); }, deadline_seconds),
             "receive from rank 0 number 1 of process group 'world'");
    CHECK(stage.nccl->aborted == 1);
  }
  stage.meeting->barrier();
}
