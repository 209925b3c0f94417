// SPDX-License-Identifier: Apache-2.0
// usage: mpirun 4 mpi_numbering   Ranks that an order has renumbered: who is who, and that groups,
// shared memory and failures speak of the new numbers. MPI starts once in a process, so this is a
// program of its own.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/mpi_runtime.hpp"

#include <algorithm>
#include <cstdlib>
#include <vector>

using namespace trireme;

namespace {

/// Task 0 stays, the others turn around.
std::vector<int> turned(int size) {
  std::vector<int> order{0};
  for (int task = size - 1; task > 0; --task) order.push_back(task);
  return order;
}

void expect(bool holds, const char* what) {
  if (!holds) throw base::Error(base::ExitCode::internal, what);
}

void check(comm::MpiRuntime& mpi, const std::vector<comm::LaunchedProcess>& seen) {
  const int size = mpi.world_size();
  const auto order = turned(size);
  const int self = mpi.world_rank().value();
  const bool is_first = self == mpi.first_process().value();
  expect(mpi.task_of(mpi.first_process()) == 0, "the first process is known");
  expect(static_cast<int>(seen.size()) == (is_first ? size : 0),
         "the first process is given every word, and no other any");
  for (int task = 0; is_first && task < size; ++task) {
    expect(seen[static_cast<std::size_t>(task)].word == base::format("word {}", task),
           "words come in the launcher's order");
  }
  for (int rank = 0; rank < size; ++rank) {
    expect(mpi.task_of(base::Rank(rank)) == order[static_cast<std::size_t>(rank)],
           "task_of() is the order");
  }
  expect(mpi.local_rank().value() == self, "local ranks follow the new ranks");
  for (const auto backend : {comm::Backend::mpi, comm::Backend::shared}) {
    const auto world = mpi.make_world({backend, 30});
    std::vector<std::int32_t> all(static_cast<std::size_t>(size));
    std::int32_t mine = mpi.task_of(mpi.world_rank());
    world->all_gather(device::Tensor(&mine, device::DType::i32, {1}),
                      device::Tensor(all.data(), device::DType::i32, {size}));
    expect(std::equal(all.begin(), all.end(), order.begin()), "groups gather in the new order");
  }
}

}  // namespace

int main(int count, char** arguments) {
  const bool fails = count > 1 && std::string_view(arguments[1]) == "fail";
  const char* const task = std::getenv("OMPI_COMM_WORLD_RANK");
  if (task == nullptr) return 1;
  std::vector<comm::LaunchedProcess> seen;
  comm::MpiRuntime mpi({.numbering = {base::format("word {}", task), [&](const auto& processes) {
                                        seen = processes;
                                        return turned(static_cast<int>(processes.size()));
                                      }}});
  auto log = base::log::settings();
  log.identity = {mpi.world_rank().value(), mpi.world_size(), mpi.node_name()};
  base::log::configure(log);
  mpi.on_failure([](const comm::RankFailure& failure) {
    base::log::local::error("test", "first {} task {}", failure.first.value(), failure.first_task);
  });
  const auto code = mpi.run([&] {
    check(mpi, seen);
    const auto world = mpi.make_world({comm::Backend::automatic, 30});
    if (fails && mpi.world_rank().value() == 1) {
      throw base::Error(base::ExitCode::checkpoint, "rank 1 gives up");
    }
    world->barrier();
    return base::ExitCode::done;
  });
  return static_cast<int>(code);
}
