// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/peer_error.hpp"

#include "mpi/behaviour/group_fixture.hpp"

using namespace trireme;
using namespace trireme::testing;

TEST_CASE("ranks that call different collectives are told so") {
  if (mpi().world_size() != 2) return;
  const auto group = world_of(Backend::shared, soon_seconds);
  const auto meeting = world_of(Backend::mpi);
  std::vector<float> values(6);
  bool told = false;
  try {
    if (group->rank() == 0) {
      group->broadcast(tensor_of(values), 0);
    } else {
      group->all_reduce(tensor_of(values));
    }
  } catch (const comm::PeerError&) {
    told = true;  // the other rank has found out first and gone away
  } catch (const base::Error& error) {
    told = true;
    CHECK(error.code() == base::ExitCode::internal);
    const std::string text = error.what();
    CAPTURE(text);
    CHECK(text.find("broadcast") != std::string::npos);
    CHECK(text.find("all_reduce") != std::string::npos);
  }
  CHECK(told);
  meeting->barrier();
}

TEST_CASE("a message of another size than awaited is refused") {
  if (mpi().world_size() < 2) return;
  for (const auto backend : ordered_backends) {
    const auto group = world_of(backend);
    const auto meeting = world_of(Backend::mpi);
    CAPTURE(name(backend));
    std::vector<std::int32_t> three{1, 2, 3};
    std::vector<std::int32_t> four(4);
    if (group->rank() == 0) group->send(tensor_of(three), 1, 2);
    if (group->rank() == 1) CHECK_THROWS_AS(group->receive(tensor_of(four), 0, 2), base::Error);
    meeting->barrier();
  }
}
