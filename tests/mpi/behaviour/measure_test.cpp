// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/measure.hpp"

#include "trireme/comm/staged.hpp"

#include "group_fixture.hpp"
#include "support/simulated_gpu/device.hpp"

using namespace trireme;
using namespace trireme::testing;
using comm::Collective;

TEST_CASE("every collective is measured with right results on every backend") {
  comm::MeasureOptions options;
  options.repeats = 2;
  options.backends = {host_backends.begin(), host_backends.end()};
  for (const char* name :
       {"all_reduce", "reduce_scatter", "all_gather", "all_to_all", "broadcast", "send_receive"}) {
    options.collective = base::value_or_throw(comm::collective_named(name));
    for (const auto bytes : std::array<std::size_t, 3>{4, 4096, 1 << 20}) {
      options.bytes = bytes;
      const auto results = comm::measure(mpi(), options);
      REQUIRE(results.size() == options.backends.size());
      for (std::size_t i = 0; i < results.size(); ++i) {
        CHECK(results[i].ranks == mpi().world_size());
        CHECK(results[i].backend ==
              (mpi().world_size() == 1 ? "local" : comm::name(options.backends[i])));
        CHECK(results[i].bytes % (4 * static_cast<std::size_t>(mpi().world_size())) == 0);
        CHECK(results[i].fastest_seconds > 0);
        CHECK(results[i].seconds >= results[i].fastest_seconds);
      }
    }
  }
}

TEST_CASE("reductions of bf16 are measured on the backends that have them") {
  comm::MeasureOptions options;
  options.repeats = 1;
  options.dtype = DType::bf16;
  options.bytes = 300000;
  options.backends = {comm::Backend::mpi, comm::Backend::shared};
  for (const auto collective : {comm::Collective::all_reduce, comm::Collective::reduce_scatter}) {
    options.collective = collective;
    CHECK(comm::measure(mpi(), options).size() == options.backends.size());
  }
}

TEST_CASE("rates are those of nccl-tests") {
  CHECK(comm::bus_factor(Collective::all_reduce, 8) == Approx(1.75));
  CHECK(comm::bus_factor(Collective::reduce_scatter, 8) == Approx(0.875));
  CHECK(comm::bus_factor(Collective::all_gather, 4) == Approx(0.75));
  CHECK(comm::bus_factor(Collective::all_to_all, 2) == Approx(0.5));
  CHECK(comm::bus_factor(Collective::broadcast, 8) == 1);
  CHECK(comm::bus_factor(Collective::send_receive, 8) == 1);
  CHECK(comm::bus_factor(Collective::all_reduce, 1) == 0);
  const comm::Measurement result{Collective::all_reduce, "nccl", 4, 8'000'000, 0.002, 0.001};
  CHECK(result.algorithm_rate() == Approx(4e9));
  CHECK(result.bus_rate() == Approx(6e9));
}

TEST_CASE("groups of a device are measured over NCCL and staged, with right results") {
  std::vector<base::Rank> all;
  for (int rank = 0; rank < mpi().world_size(); ++rank) all.emplace_back(rank);
  const auto world = [&] { return mpi().make_world({comm::Backend::mpi, 30}); };
  const auto meeting = world();
  const auto nccl = make_fake_nccl(mpi(), all);
  SimulatedDevice device(Haste{Haste::Kind::lazy, 0});
  comm::NcclGroups parent(nccl->library(), mpi(), *meeting, device);
  std::vector<std::unique_ptr<ProcessGroup>> groups;
  groups.push_back(parent.split(world()));
  groups.push_back(comm::make_staged_group(world(), device));
  comm::MeasureOptions options;
  options.repeats = 1;
  options.bytes = 4096;
  for (const auto collective :
       {Collective::all_reduce, Collective::reduce_scatter, Collective::all_gather,
        Collective::all_to_all, Collective::broadcast, Collective::send_receive}) {
    // A rank needs no NCCL to talk to itself.
    if (collective == Collective::send_receive && mpi().world_size() == 1) continue;
    options.collective = collective;
    const auto results = comm::measure(*meeting, device, groups, options);
    REQUIRE(results.size() == 2);
    CHECK(results[0].backend == "nccl");
    CHECK(results[1].backend == "staged");
    CHECK(results[0].ranks == mpi().world_size());
  }
}
