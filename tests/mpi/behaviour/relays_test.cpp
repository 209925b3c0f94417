// SPDX-License-Identifier: Apache-2.0
// Small collectives of many ranks over MPI are relayed: counted by what the library is asked to
// send, in whose place this stands (the standard's profiling interface).
#include "mpi/behaviour/group_fixture.hpp"

#include <mpi.h>

#include <algorithm>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;

namespace {

std::int32_t messages_sent = 0;

}  // namespace

extern "C" int MPI_Isend(const void* from, int count, MPI_Datatype type, int to, int tag,
                         MPI_Comm communicator, MPI_Request* request) {
  ++messages_sent;
  return PMPI_Isend(from, count, type, to, tag, communicator, request);
}

TEST_CASE("among six ranks small collectives take fewer messages than one from each to each") {
  const int ranks = mpi().world_size();
  if (ranks != 6) return;
  const auto group = world_of(Backend::mpi);
  const auto meeting = world_of(Backend::mpi);
  std::vector<float> sums(4, 1.0F);
  std::vector<std::int32_t> counts(4, 1);
  std::vector<float> all(static_cast<std::size_t>(ranks));
  struct Expected {
    std::string operation;
    std::function<void()> call;
    int all_ranks;  ///< messages of all ranks together
    int one_rank;   ///< of the one that sends most
  };
  const std::vector<Expected> collectives{
      // Up a tree and down again.
      {"all_reduce of integers", [&] { group->all_reduce(tensor_of(counts)); }, 10, 3},
      // Three rounds; a message of parts that go on at the first rank is two.
      {"all_reduce", [&] { group->all_reduce(tensor_of(sums)); }, 20, 5},
      {"all_gather", [&] { group->all_gather(tensor_of(sums).slice(0, 0, 1), tensor_of(all)); }, 20,
       5},
      {"broadcast", [&] { group->broadcast(tensor_of(sums), 2); }, 5, 3},
      {"barrier", [&] { group->barrier(); }, 18, 3},
  };
  for (const auto& [operation, call, all_ranks, one_rank] : collectives) {
    CAPTURE(operation);
    const auto before = messages_sent;
    call();
    std::vector<std::int32_t> sent(static_cast<std::size_t>(ranks), 0);
    sent[static_cast<std::size_t>(meeting->rank())] = messages_sent - before;
    meeting->all_reduce(tensor_of(sent));
    CHECK(std::accumulate(sent.begin(), sent.end(), 0) == all_ranks);
    CHECK(*std::max_element(sent.begin(), sent.end()) == one_rank);
  }
}
