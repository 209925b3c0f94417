// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/cluster.hpp"

#include "trireme/comm/agree.hpp"
#include "trireme/runtime/gather_placement.hpp"

#include "support/mpi/world.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using layout::Axis;
using testing::mpi;

namespace {

base::Environment threads(const char* value) {
  return base::Environment(
      std::map<std::string, std::string, std::less<>>{{"OMP_NUM_THREADS", value}});
}

runtime::Cluster join(int pipeline, int tensor, int context = 1) {
  runtime::JoinOptions options;
  options.arrangement.context = context;
  options.arrangement.pipeline = pipeline;
  options.arrangement.tensor = tensor;
  options.timeout_seconds = 30;
  return runtime::join(mpi(), options, threads("3"));
}

/// The ranks of a group differ on the axes only, in the order of the axes.
void check_group(const runtime::Cluster& cluster, const comm::ProcessGroup& group,
                 const std::vector<Axis>& axes) {
  CHECK(group.ranks() == cluster.mesh.group(axes, cluster.rank));
  CHECK(group.ranks()[static_cast<std::size_t>(group.rank())] == cluster.rank);
  // And they really talk: the sum of their ranks.
  std::int32_t sum = cluster.rank.value();
  const_cast<comm::ProcessGroup&>(group).all_reduce({&sum, device::DType::i32, {1}});
  std::int32_t expected = 0;
  for (const auto rank : group.ranks()) expected += rank.value();
  CHECK(sum == expected);
}

}  // namespace

TEST_CASE("a cluster has a group for each axis, at every shape of the mesh") {
  const int world = mpi().world_size();
  for (int pipeline = 1; pipeline <= world; ++pipeline) {
    for (int tensor = 1; pipeline * tensor <= world; ++tensor) {
      if (world % (pipeline * tensor) != 0) continue;
      CAPTURE(pipeline, tensor);
      const auto cluster = join(pipeline, tensor);
      check_group(cluster, *cluster.world, {Axis::pipeline, Axis::data, Axis::tensor});
      check_group(cluster, cluster.groups.on(layout::Axis::tensor), {Axis::tensor});
      check_group(cluster, cluster.groups.on(layout::Axis::pipeline), {Axis::pipeline});
      check_group(cluster, cluster.groups.on(layout::Axis::data), {Axis::data});
      const int stage = cluster.coordinate(Axis::pipeline);
      const bool at_an_end = pipeline > 1 && (stage == 0 || stage == pipeline - 1);
      const auto* const ends = cluster.groups.views().ends();
      REQUIRE((ends != nullptr) == at_an_end);
      if (at_an_end) {
        CHECK(ends->size() == 2);
        CHECK(ends->rank() == (stage == 0 ? 0 : 1));
      }
      CHECK(cluster.binding.threads == 3);
    }
  }
}

TEST_CASE("a cluster whose ranks divide sequences has groups of these and of replicas") {
  const int world = mpi().world_size();
  if (world % 2 != 0) return;
  const auto cluster = join(1, 1, 2);
  check_group(cluster, *cluster.groups.views().if_any(Axis::context), {Axis::context});
  check_group(cluster, cluster.groups.views().replicas(), {Axis::data, Axis::context});
  check_group(cluster, cluster.groups.on(Axis::data), {Axis::data});
  CHECK(cluster.groups.views().replicas().size() == world);
  CHECK(join(1, 1).groups.views().if_any(Axis::context) == nullptr);
}

TEST_CASE("the first rank knows where all ranks compute") {
  const auto cluster = join(1, mpi().world_size());
  const auto placement = runtime::gather_placement(cluster);
  if (cluster.rank.value() != 0) {
    CHECK(placement.ranks.empty());
    return;
  }
  CHECK(placement.mesh == cluster.mesh);
  REQUIRE(std::ssize(placement.ranks) == mpi().world_size());
  for (const auto& place : placement.ranks) {
    CHECK(place.node == mpi().node_name());
    CHECK(place.threads == 3);
    CHECK_FALSE(place.cpus.empty());
  }
  CHECK(placement.ranks.front().cpus == cluster.binding.cpus);
  CHECK(placement.ranks.front().numa_nodes == cluster.binding.numa_nodes);
}

TEST_CASE("groups of one node share memory by themselves") {
  if (mpi().world_size() == 1) return;
  const auto cluster = join(1, mpi().world_size());
  CHECK(std::string(cluster.world->backend()) == "shared");
  CHECK(std::string(cluster.groups.on(layout::Axis::tensor).backend()) == "shared");
  CHECK(std::string(cluster.groups.on(layout::Axis::data).backend()) == "local");
}

TEST_CASE("a mesh that does not fit is everybody's failure at once") {
  try {
    join(1, mpi().world_size() + 1);
    FAIL("the mesh was accepted");
  } catch (const comm::AgreedError& error) {
    CHECK(error.code() == base::ExitCode::launch);
    CHECK(std::string(error.what()).find("parallel.tensor") != std::string::npos);
  }
}

TEST_CASE("one rank with a bad environment stops all") {
  const auto environment = threads(mpi().world_rank().value() == 0 ? "none" : "1");
  try {
    runtime::join(mpi(), {}, environment);
    FAIL("the cluster was made");
  } catch (const comm::AgreedError& error) {
    CHECK(error.first() == base::Rank(0));
    CHECK(error.code() == base::ExitCode::usage);
  }
}
