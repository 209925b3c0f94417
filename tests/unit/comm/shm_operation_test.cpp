// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"

#include "comm/core/progress_engine.hpp"
#include "comm/shm/operation.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <memory>
#include <numeric>
#include <vector>

using namespace trireme;
using comm::SharedOperation;
using comm::SharedPlan;

namespace {

/// Both ranks of a group of two in one process and one thread: the test decides who moves when.
class TwoRanks {
 public:
  TwoRanks()
      : node_(comm::make_local_group("node", base::Rank(0))),
        status_(base::value_or_throw(
            comm::NodeStatus::create(*node_, {base::LocalRank(0), base::Rank(0), "here"}))),
        memory_(base::value_or_throw(
            comm::SharedMemory::create(*node_, comm::SharedChannel::bytes_needed(2)))),
        channel_{channel_of(0), channel_of(1)} {}

  /// Operation `number` (from 0) of rank `rank`: an all-reduce of `values` in place. Not moved on.
  std::unique_ptr<SharedOperation> small_all_reduce(int rank, std::uint64_t number,
                                                    std::vector<float>& values) {
    auto* const bytes = reinterpret_cast<std::byte*>(values.data());
    SharedPlan plan;
    plan.kind = SharedPlan::Kind::small_all_reduce;
    plan.total_bytes = values.size() * sizeof(float);
    plan.whole = plan.out = bytes;
    plan.gather_rounds = 1;
    plan.gather_piece = comm::SharedChannel::gather_piece();
    plan.begins = rank == 0 ? std::vector<std::size_t>{0, plan.total_bytes, plan.total_bytes}
                            : std::vector<std::size_t>{0, 0, plan.total_bytes};
    const auto index = static_cast<std::size_t>(rank);
    return std::make_unique<SharedOperation>(
        progress_[index], comm::OperationLabel{"all_reduce", "test", members_, number + 1, 5.0},
        channel_[index], std::move(plan), SharedOperation::Rounds{0, number});
  }

 private:
  comm::SharedChannel channel_of(int self) {
    // Both wake the one rank that there is.
    return {*memory_, *status_, {base::LocalRank(0), base::LocalRank(0)}, self};
  }

  std::array<base::Rank, 2> members_{base::Rank(0), base::Rank(1)};
  std::unique_ptr<comm::ProcessGroup> node_;
  std::unique_ptr<comm::NodeStatus> status_;
  std::unique_ptr<comm::SharedMemory> memory_;
  std::array<comm::SharedChannel, 2> channel_;
  std::array<comm::ProgressEngine, 2> progress_;
};

}  // namespace

TEST_CASE("a small all-reduce adds its own numbers even after a later one has its slot") {
  constexpr std::uint64_t count = comm::SharedChannel::slots + 1;
  TwoRanks ranks;
  std::array<std::vector<std::vector<float>>, 2> values;
  for (std::uint64_t number = 0; number < count; ++number) {
    values[0].emplace_back(5, static_cast<float>(1 + number));
    values[1].emplace_back(5, static_cast<float>(100 * (1 + number)));
  }
  std::array<std::vector<std::unique_ptr<SharedOperation>>, 2> operations;
  const auto start = [&](int rank, std::uint64_t number) -> SharedOperation& {
    const auto index = static_cast<std::size_t>(rank);
    operations[index].push_back(ranks.small_all_reduce(rank, number, values[index][number]));
    operations[index].back()->advance();
    return *operations[index].back();
  };
  // Rank 0 fills all of its slots before rank 1 comes.
  for (std::uint64_t number = 0; number + 1 < count; ++number) {
    CHECK_FALSE(start(0, number).done());
  }
  // Rank 1 takes the first slot, so rank 0's last operation may fill it anew …
  CHECK(start(1, 0).done());
  CHECK_FALSE(start(0, count - 1).done());
  // … before rank 0 has moved its first operation on.
  CHECK(operations[0][0]->advance());
  REQUIRE(operations[0][0]->done());
  CHECK(values[0][0] == std::vector<float>(5, 101.0F));
  CHECK(values[1][0] == std::vector<float>(5, 101.0F));

  for (std::uint64_t number = 1; number < count; ++number) start(1, number);
  for (const auto& side : operations) {
    for (const auto& operation : side) operation->advance();
  }
  for (std::uint64_t number = 0; number < count; ++number) {
    const std::vector<float> due(5, static_cast<float>(101 * (1 + number)));
    CHECK(operations[0][number]->done());
    CHECK(operations[1][number]->done());
    CHECK(values[0][number] == due);
    CHECK(values[1][number] == due);
  }
}
