// SPDX-License-Identifier: Apache-2.0
// Groups that are split from one communicator, and what is left when they end.
#include "mpi/behaviour/group_fixture.hpp"
#include "support/simulated_gpu/device.hpp"

#include <algorithm>
#include <array>
#include <cmath>

using namespace trireme;
using namespace trireme::testing;

namespace {

std::vector<base::Rank> everybody() {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < mpi().world_size(); ++rank) ranks.emplace_back(rank);
  return ranks;
}

/// The sum of all members' numbers on the device.
std::int32_t sum_of(ProcessGroup& group, device::Device& device, std::int32_t mine) {
  auto arena = device.arena(device::Purpose::communication, 64);
  const auto there = arena.allocate(DType::i32, {1});
  device.copy_in(&mine, there);
  group.all_reduce(there);
  std::int32_t sum = 0;
  device.copy_out(there, &sum);
  device.synchronize();
  return sum;
}

std::int32_t sum_of_ranks(const std::vector<base::Rank>& ranks) {
  std::int32_t sum = 0;
  for (const auto rank : ranks) sum += rank.value();
  return sum;
}

std::unique_ptr<ProcessGroup> host_group(const std::string& group_name,
                                         const std::vector<base::Rank>& ranks) {
  return mpi().make_group(group_name, ranks, {comm::Backend::mpi, 30});
}

}  // namespace

TEST_CASE("rows and columns are parts of one communicator, and some ranks are in no part") {
  const auto nccl = make_fake_nccl(mpi(), everybody());
  const int size = mpi().world_size();
  const int rank = mpi().world_rank().value();
  {
    SimulatedDevice device(Haste{Haste::Kind::lazy, 0});
    const auto world = host_group("world", everybody());
    comm::NcclGroups groups(nccl->library(), mpi(), *world, device);
    for (int columns = 1; columns <= size; ++columns) {
      if (size % columns != 0) continue;
      CAPTURE(columns);
      std::vector<base::Rank> row;
      std::vector<base::Rank> column;
      for (int i = 0; i < columns; ++i) row.emplace_back(rank / columns * columns + i);
      for (int i = rank % columns; i < size; i += columns) column.emplace_back(i);
      const auto tp = groups.split(host_group("tp", row));
      const auto dp = groups.split(host_group("dp", column));
      const bool at_an_end = rank == 0 || rank == size - 1;
      const std::vector<base::Rank> ends{base::Rank(0), base::Rank(size - 1)};
      const auto embedding =
          groups.split(at_an_end && size > 1 ? host_group("embedding", ends) : nullptr);
      CHECK(sum_of(*tp, device, rank) == sum_of_ranks(row));
      CHECK(sum_of(*dp, device, rank) == sum_of_ranks(column));
      REQUIRE((embedding != nullptr) == (at_an_end && size > 1));
      if (embedding) CHECK(sum_of(*embedding, device, rank) == size - 1);
      CHECK(std::string(tp->backend()) == "nccl");
      CHECK(std::string(tp->host_group().backend()) != "nccl");
    }
  }
  // All ends were orderly ones.
  CHECK(nccl->alive() == 0);
  CHECK(nccl->aborted == 0);
  CHECK(nccl->ended_in_order >= 3);
}

TEST_CASE("many ranks meet through several ids") {
  const auto nccl = make_fake_nccl(mpi(), everybody());
  SimulatedDevice device(Haste{Haste::Kind::lazy, 0});
  const auto world = host_group("world", everybody());
  const int size = mpi().world_size();
  comm::NcclGroups groups(nccl->library(), mpi(), *world, device, {30, 2});
  CHECK(nccl->ids_taken == (size > 2 ? (size + 1) / 2 : 0));
  const auto group = groups.split(host_group("world", everybody()));
  CHECK(sum_of(*group, device, 1) == size);
}

TEST_CASE("parts of different lengths are calls of groups no larger than NCCL takes") {
  const auto nccl = make_fake_nccl(mpi(), everybody());
  nccl->faults.calls_per_group = 2;
  SimulatedDevice device(Haste{Haste::Kind::lazy, 0});
  const auto world = host_group("world", everybody());
  comm::NcclOptions options{30};
  options.calls_per_group = 2;
  comm::NcclGroups groups(nccl->library(), mpi(), *world, device, options);
  const auto group = groups.split(host_group("world", everybody()));
  const int size = group->size();
  // Every second rank has nothing, and the others have more and more.
  comm::Cuts cuts{0};
  for (int rank = 0; rank < size; ++rank) cuts.push_back(cuts.back() + (rank % 2) * (rank + 5));
  auto arena = device.arena(device::Purpose::communication, 1 << 14);
  const auto whole = arena.allocate(DType::f32, {cuts.back()});
  const std::vector<float> mine(static_cast<std::size_t>(cuts.back()), 1.0F);
  device.copy_in(mine.data(), whole);
  const auto self = static_cast<std::size_t>(group->rank());
  const auto part = whole.slice(0, cuts[self], cuts[self + 1] - cuts[self]);
  group->reduce_scatter(whole, part, cuts);
  group->all_gather(part, whole, cuts);
  std::vector<float> sums(mine.size());
  device.copy_out(whole, sums.data());
  device.synchronize();
  CHECK(sums == std::vector<float>(mine.size(), static_cast<float>(size)));
  // Owners of nothing have no call, and NCCL's own collectives are for equal parts.
  CHECK(nccl->calls["ncclReduceScatter"] == 0);
  CHECK(nccl->calls["ncclReduce"] == size / 2);
  CHECK(nccl->calls["ncclBroadcast"] == size / 2);
}

namespace {

/// How a communicator of many pretended ranks was begun.
struct Beginning {
  int ranks = 0;
  int rank = -1;
  /// 0: by the call that takes one.
  int ids = 0;
  std::vector<std::array<char, 128>> all;
};
Beginning beginning;
int ids_made = 0;

/// As much of NCCL as the making of a communicator needs, in a world that is not there.
comm::nccl::Api api_of_nobody() {
  using comm::nccl::Comm;
  using comm::nccl::Config;
  using comm::nccl::Result;
  using comm::nccl::UniqueId;
  static int comm_of_all = 0;
  comm::nccl::Api api;
  api.get_unique_id = [](UniqueId* id) {
    id->bytes.fill(static_cast<char>(++ids_made));
    return Result::success;
  };
  api.init_rank = [](Comm** comm, int ranks, UniqueId id, int rank, Config*) {
    beginning = {ranks, rank, 0, {id.bytes}};
    *comm = reinterpret_cast<Comm*>(&comm_of_all);
    return Result::success;
  };
  api.init_rank_scalable = [](Comm** comm, int ranks, int rank, int ids, UniqueId* all, Config*) {
    beginning = {ranks, rank, ids, {}};
    for (int id = 0; id < ids; ++id) beginning.all.push_back(all[id].bytes);
    *comm = reinterpret_cast<Comm*>(&comm_of_all);
    return Result::success;
  };
  api.get_async_error = [](Comm*, Result* error) {
    *error = Result::success;
    return Result::success;
  };
  api.finalize = api.destroy = api.abort = [](Comm*) { return Result::success; };
  return api;
}

/// The begin of one of so many ranks, with the options that runs have.
Beginning begin_as(const comm::nccl::Api& api, int rank, int ranks) {
  std::vector<base::Rank> everyone;
  for (int each = 0; each < ranks; ++each) everyone.emplace_back(each);
  const auto world = comm::make_dry_run_group("world", everyone, rank, comm::DryRunData::mirrored);
  SimulatedDevice device(Haste{Haste::Kind::lazy, 0});
  beginning = {};
  const comm::NcclGroups groups({&api, 22899, "of nobody"}, mpi(), *world, device);
  return beginning;
}

/// Which of so many ranks make ids.
std::vector<int> makers(const comm::nccl::Api& api, int ranks) {
  std::vector<int> found;
  for (int rank = 0; rank < ranks; ++rank) {
    const int before = ids_made;
    begin_as(api, rank, ranks);
    if (ids_made > before) found.push_back(rank);
  }
  return found;
}

}  // namespace

TEST_CASE("above 256 ranks there are several ids, made far apart, where NCCL takes several") {
  if (mpi().world_size() > 1) return;
  auto api = api_of_nobody();
  const auto few = begin_as(api, 0, 256);
  CHECK(few.ids == 0);
  CHECK(few.ranks == 256);
  CHECK(makers(api, 256) == std::vector<int>{0});
  const auto more = begin_as(api, 0, 257);
  CHECK(more.ids == 2);
  CHECK(more.ranks == 257);
  CHECK(more.all.size() == 2);
  CHECK(makers(api, 257) == std::vector<int>{0, 128});
  CHECK(makers(api, 1000) == std::vector<int>{0, 250, 500, 750});
  const auto many = begin_as(api, 8192, 16384);
  CHECK(many.ids == 64);
  CHECK(many.rank == 8192);
  // Before 2.23 all meet through one.
  api.init_rank_scalable = nullptr;
  const auto old = begin_as(api, 0, 16384);
  CHECK(old.ids == 0);
  CHECK(old.all.size() == 1);
  CHECK(makers(api, 257) == std::vector<int>{0});
}

TEST_CASE("collectives on a lane keep their order, however late NCCL takes them") {
  for (const int looks : {0, 1, 5}) {
    CAPTURE(looks);
    const auto group = make_fake_nccl_group(
        mpi(), "dp", everybody(), 30, FakePlan{[&](FakeNccl& nccl) { nccl.faults.looks = looks; }});
    std::vector<std::vector<float>> values;
    for (const std::int64_t count : {6000, 3, 70001, 0, 64}) {
      values.push_back(exact_values(group->rank(), count));
    }
    std::vector<comm::Work> works;
    for (auto& value : values) {
      works.push_back(group->start_all_reduce(tensor_of(value), ReduceOp::sum));
    }
    if (group->rank() % 2 == 1) std::reverse(works.begin(), works.end());
    for (auto& work : works) work.wait();
    for (const auto& value : values) {
      for (std::size_t i = 0; i < value.size(); i += 7) {
        float sum = 0;
        for (int rank = 0; rank < group->size(); ++rank) {
          sum += exact_value(rank, static_cast<std::int64_t>(i));
        }
        CHECK(value[i] == sum);
      }
    }
  }
}

TEST_CASE("bf16 sums of NCCL are near those of the host") {
  const auto group = make_fake_nccl_group(mpi(), "tp", everybody(), 30);
  std::vector<Bf16> values;
  for (std::int64_t i = 0; i < 5040; ++i) {
    values.push_back(device::to_bf16(exact_value(group->rank(), i)));
  }
  group->all_reduce(tensor_of(values));
  for (std::size_t i = 0; i < values.size(); ++i) {
    float sum = 0;
    for (int rank = 0; rank < group->size(); ++rank) {
      sum += exact_value(rank, static_cast<std::int64_t>(i));
    }
    const auto away = std::abs(device::to_float(values[i]) - sum);
    CHECK(away <= sum * static_cast<float>(group->size()) / 256);
  }
}

TEST_CASE("stages send in both directions at once, more than a lane holds") {
  if (mpi().world_size() < 2) return;
  const auto group = make_fake_nccl_group(mpi(), "pp", everybody(), 30);
  const int size = group->size();
  const int up = (group->rank() + 1) % size;
  const int down = (group->rank() + size - 1) % size;
  for (int round = 0; round < 3; ++round) {
    std::vector<std::vector<float>> out(4, exact_values(group->rank(), 9001));
    std::vector<std::vector<float>> in(4, std::vector<float>(9001));
    // All send before any receives: on one stream for both this would never end.
    std::vector<comm::Work> works;
    works.push_back(group->start_send(tensor_of(out[0]), up, 1));
    works.push_back(group->start_send(tensor_of(out[1]), down, 2));
    works.push_back(group->start_send(tensor_of(out[2]), up, 3));
    works.push_back(group->start_receive(tensor_of(in[2]), down, 3));
    works.push_back(group->start_receive(tensor_of(in[1]), up, 2));
    works.push_back(group->start_receive(tensor_of(in[0]), down, 1));
    for (auto& work : works) work.wait();
    CHECK(first_difference(in[0], exact_values(down, 9001)) == -1);
    CHECK(first_difference(in[1], exact_values(up, 9001)) == -1);
    CHECK(first_difference(in[2], exact_values(down, 9001)) == -1);
  }
}
