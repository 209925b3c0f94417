// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/device_groups.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using runtime::choose_device_groups;
using runtime::DeviceGroups;
using runtime::NcclOffer;

namespace {

std::vector<NcclOffer> two_nodes() {
  return {{0, "GPU 0000:1b:00.0", 22809, ""},
          {0, "GPU 0000:2b:00.0", 22809, ""},
          {1, "GPU 0000:1b:00.0", 22809, ""}};
}

/// With `auto` it is staged and says why, with `nccl` it is refused with the same reason.
void check_obstacle(const std::vector<NcclOffer>& offers, const std::string& reason) {
  const auto automatic = choose_device_groups(DeviceGroups::automatic, offers);
  REQUIRE(automatic.ok());
  CHECK(automatic->groups == DeviceGroups::staged);
  CHECK_THAT(automatic->sentence, Catch::Contains(reason));
  const auto asked = choose_device_groups(DeviceGroups::nccl, offers);
  REQUIRE_FALSE(asked.ok());
  CHECK(asked.failure().code == base::ExitCode::topology);
  CHECK_THAT(asked.failure().text, Catch::Contains("comm.backend = nccl"));
  CHECK_THAT(asked.failure().text, Catch::Contains(reason));
}

}  // namespace

TEST_CASE("NCCL serves ranks that have a GPU each, on any nodes") {
  for (const auto wish : {DeviceGroups::automatic, DeviceGroups::nccl}) {
    const auto choice = choose_device_groups(wish, two_nodes());
    REQUIRE(choice.ok());
    CHECK(choice->groups == DeviceGroups::nccl);
    CHECK(choice->sentence == "process groups are those of NCCL 2.28.9");
  }
  const auto asked = choose_device_groups(DeviceGroups::staged, two_nodes());
  REQUIRE(asked.ok());
  CHECK(asked->groups == DeviceGroups::staged);
}

TEST_CASE("ranks that share a GPU, have no NCCL or another one go through the host and say why") {
  auto shared = two_nodes();
  shared[1].gpu = shared[0].gpu;
  check_obstacle(shared, "ranks 0 and 1 share GPU 0000:1b:00.0");
  auto without = two_nodes();
  without[2] = {1, "GPU 0000:1b:00.0", 0, "cannot load NCCL"};
  check_obstacle(without, "rank 2: cannot load NCCL");
  auto older = two_nodes();
  older[1].version = 22005;
  check_obstacle(older, "rank 0 has NCCL 2.28.9 and rank 1 has 2.20.5");
}

TEST_CASE("one rank uses NCCL only when it is asked to") {
  const std::vector<NcclOffer> alone{{0, "GPU 0000:1b:00.0", 22809, ""}};
  CHECK(choose_device_groups(DeviceGroups::automatic, alone)->groups == DeviceGroups::staged);
  CHECK(choose_device_groups(DeviceGroups::nccl, alone)->groups == DeviceGroups::nccl);
}
