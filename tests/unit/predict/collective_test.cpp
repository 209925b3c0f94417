// SPDX-License-Identifier: Apache-2.0
#include "predict/collective.hpp"

#include "machines.hpp"
#include "time_text.hpp"

#include <catch2/catch.hpp>

using namespace trireme::predict;
using trireme::tests::plain_machine;

TEST_CASE("without latencies a ring moves what each rank lacks") {
  const auto machine = plain_machine();
  const Links links(machine, 2);
  const GroupPlace pair{2, 2};
  // 1 MB: half of it once, or twice; at 1 GB/s.
  CHECK(seconds_of(links.collective(CollectiveKind::all_gather, 1e6, pair)) == Approx(0.5e-3));
  CHECK(seconds_of(links.collective(CollectiveKind::reduce_scatter, 1e6, pair)) == Approx(0.5e-3));
  CHECK(seconds_of(links.collective(CollectiveKind::all_reduce, 1e6, pair)) == Approx(1e-3));
  CHECK(links.collective(CollectiveKind::all_reduce, 1e6, {1, 1}) == Time::zero());
}

TEST_CASE("groups of a node share its interfaces, by how many members they have on it") {
  const auto machine = plain_machine();
  const Links links(machine, 2);
  // Two interfaces of 0.25 GB/s: a group with one rank of the two on each node has one of them.
  const auto one = links.collective(CollectiveKind::all_gather, 1e6, {4, 1});
  CHECK(seconds_of(one) == Approx(0.75e6 / 0.25e9));
  const auto both = links.collective(CollectiveKind::all_gather, 1e6, {4, 2});
  CHECK(seconds_of(both) == Approx(0.75e6 / 0.5e9));
  CHECK(seconds_of(links.message(1e6, true)) == Approx(1e6 / 0.25e9));
  CHECK(seconds_of(links.message(1e6, false)) == Approx(1e6 / 1e9));
}

TEST_CASE("latencies are those of the fastest protocol, in NCCL's form") {
  auto machine = plain_machine();
  machine.inside.latency = 8.4e-6;
  machine.inside.hop = 3.4e-6;
  const Links links(machine, 8);
  const GroupPlace eight{8, 8};
  // A small one in LL: 3.6 us and 14 steps of 0.47 us, at a quarter of the rate.
  const double small = 3.6e-6 + 14 * 0.47e-6 + 4 * 14.0 / 8 * 8 / 1e9;
  CHECK(seconds_of(links.collective(CollectiveKind::all_reduce, 8, eight)) ==
        Approx(small).epsilon(1e-4));
  // A large one in Simple.
  const double large = 8.4e-6 + 14 * 3.4e-6 + 14.0 / 8 * 1e9 / 1e9;
  CHECK(seconds_of(links.collective(CollectiveKind::all_reduce, 1e9, eight)) ==
        Approx(large).epsilon(1e-6));
}

TEST_CASE("between many nodes a small all-reduce goes by a tree") {
  auto machine = plain_machine();
  machine.network.hop = 9.6e-6;
  const Links links(machine, 2);
  // 128 nodes: 7 levels there and back in LL, and not 254 hops between nodes.
  CHECK(seconds_of(links.collective(CollectiveKind::all_reduce, 8, {256, 2})) ==
        Approx(2 * 7 * 2.7e-6).epsilon(1e-2));
}

TEST_CASE("measured messages stand for rate and latency") {
  auto machine = plain_machine();
  machine.inside.messages = {{1000, 1e-6}, {3000, 2e-6}, {10000, 9e-6}};
  CHECK(message_seconds(machine.inside.messages, 10) == 1e-6);
  CHECK(message_seconds(machine.inside.messages, 2000) == Approx(1.5e-6));
  CHECK(message_seconds(machine.inside.messages, 20000) == Approx(19e-6));
  const Links links(machine, 2);
  // Two steps of half of it.
  CHECK(seconds_of(links.collective(CollectiveKind::all_reduce, 6000, {2, 2})) == Approx(4e-6));
  // A calibration's share counts for them, too.
  machine.share.link = 0.5;
  CHECK(seconds_of(links.collective(CollectiveKind::all_reduce, 6000, {2, 2})) == Approx(8e-6));
  CHECK(seconds_of(links.message(1000, false)) == Approx(2e-6));
}

TEST_CASE("ranks lie on nodes in their order") {
  auto machine = plain_machine();
  machine.node.gpus = 8;
  const Placement placement(machine, 64);
  CHECK(placement.group(8, 1).nodes() == 1);
  CHECK(placement.group(16, 1).nodes() == 2);
  CHECK(placement.group(4, 4).on_node == 2);
  CHECK(placement.group(4, 8).on_node == 1);
  CHECK(placement.crosses(7, 8));
  CHECK_FALSE(placement.crosses(8, 15));
  // The second group of 8 lies on two nodes of 12, the fifth of 16 on two of 72.
  machine.node.gpus = 12;
  CHECK(Placement(machine, 8).group(8, 1).nodes() == 1);
  CHECK(Placement(machine, 24).group(8, 1).nodes() == 2);
  machine.node.gpus = 72;
  CHECK(Placement(machine, 64).group(16, 1).nodes() == 1);
  CHECK(Placement(machine, 144).group(16, 1).nodes() == 2);
  machine.node.gpus = 0;
  CHECK(Placement(machine, 64).group(64, 1).nodes() == 1);
}
