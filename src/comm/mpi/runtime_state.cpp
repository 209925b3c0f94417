// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/runtime_state.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/text.hpp"

#include "comm/mpi/call_deadline.hpp"
#include "comm/shm/group.hpp"

#include <sched.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace trireme::comm {
namespace {

/// Tags on the control communicator: 0 to 8191 inside MPI_Comm_create_group (Open MPI uses the
/// tag for messages of its own), then arrivals; failure messages are above (watchdog/watchdog.cpp).
constexpr int first_arrival_tag = 8192;

/// Tag that distinguishes groups that are made at the same time.
int group_tag(const std::string& group_name, const std::vector<base::Rank>& ranks) {
  base::Fnv1a digest;
  digest.add(group_name);
  for (const auto rank : ranks) digest.add_word(static_cast<std::uint64_t>(rank.value()));
  return static_cast<int>(digest.value() % 8192U);
}

/// Number of CPUs that the ranks of this node may use in all: where a launcher binds them, each
/// rank is allowed its own only. All ranks of the node get the same number.
int cpus_of_node(MPI_Comm node, int ranks) {
  cpu_set_t mine;
  CPU_ZERO(&mine);
  if (sched_getaffinity(0, sizeof mine, &mine) != 0) CPU_SET(0, &mine);
  std::vector<cpu_set_t> all(static_cast<std::size_t>(ranks));
  mpi::library_all_gather(&mine, all.data(), sizeof mine, node);
  for (const auto& one : all) CPU_OR(&mine, &mine, &one);
  return CPU_COUNT(&mine);
}

/// Data of a rank that all others get at the start.
struct Introduction {
  std::int32_t leader;
  std::int32_t task;
  std::array<char, 56> host;
};

/// Data of a process that the launcher's first one gets before ranks are numbered.
struct Word {
  std::array<char, 56> node{};
  std::array<char, Numbering::longest_word + 1> text{};
};

template <std::size_t N>
void put(std::array<char, N>& place, const std::string& text) {
  std::memcpy(place.data(), text.data(), std::min(text.size(), N - 1));
}

/// Rank of each process by the order of these words; of none where it is no permutation.
std::vector<std::int32_t> ranks_of(const Numbering& numbering, const std::vector<Word>& words) {
  constexpr std::int32_t none = -1;
  std::vector<LaunchedProcess> processes;
  for (const auto& one : words) processes.push_back({one.node.data(), one.text.data()});
  const auto order = numbering.order(processes);
  std::vector<std::int32_t> ranks(words.size(), none);
  for (std::size_t rank = 0; rank < order.size(); ++rank) {
    const auto process = static_cast<std::size_t>(order[rank]);
    if (process < ranks.size()) ranks[process] = static_cast<std::int32_t>(rank);
  }
  const bool is_permutation =
      order.size() == ranks.size() && std::find(ranks.begin(), ranks.end(), none) == ranks.end();
  if (!is_permutation) std::fill(ranks.begin(), ranks.end(), none);
  return ranks;
}

/// World communicator with its ranks numbered as asked.
mpi::Communicator number_world(const Numbering& numbering) {
  if (!numbering.order) return mpi::dup(MPI_COMM_WORLD);
  const bool is_first = mpi::rank(MPI_COMM_WORLD) == 0;
  Word mine;
  put(mine.node, mpi::processor_name());
  if (numbering.word.size() <= Numbering::longest_word) put(mine.text, numbering.word);
  std::vector<Word> all(is_first ? static_cast<std::size_t>(mpi::size(MPI_COMM_WORLD)) : 0);
  std::vector<std::int32_t> ranks;
  std::int32_t own = 0;
  {
    const CallDeadline deadline("the first exchange of all ranks (MPI_Gather, MPI_Scatter)");
    mpi::library_gather(&mine, all.data(), sizeof mine, 0, MPI_COMM_WORLD);
    if (is_first) ranks = ranks_of(numbering, all);
    mpi::library_scatter(ranks.data(), &own, sizeof own, 0, MPI_COMM_WORLD);
  }
  return own < 0 ? mpi::dup(MPI_COMM_WORLD) : mpi::split(MPI_COMM_WORLD, own);
}

}  // namespace

MpiRuntime::State::State(const StartOptions& options)
    : node_name(mpi::processor_name()),
      control_(number_world(options.numbering)),
      node_(mpi::split_type_shared(control_.get())),
      // Deadline of the ranks of this node while the status page is made.
      start_timeout_seconds_(options.timeout_seconds) {
  world_rank = base::Rank(mpi::rank(control_.get()));
  world_size = mpi::size(control_.get());
  local_rank = base::LocalRank(mpi::rank(node_.get()));
  local_size = mpi::size(node_.get());
  if (local_size > cpus_of_node(node_.get(), local_size)) {
    core_sharing_ = CoreSharing::shared;
    // Spinning would keep the core from the rank that is waited for.
    WaitPolicy patience;
    patience.spin = std::chrono::microseconds(0);
    patience.yield = std::chrono::microseconds(20);
    progress_.use(patience);
  }
  const auto world = learn_world();
  auto status = make_node_status(world);
  const CallDeadline deadline("the first connections between nodes (MPI_Gather, MPI_Bcast)");
  watch_ = std::make_unique<Watchdog>(std::move(status), world, control_.get());
  progress_.use(watch_.get());
}

World MpiRuntime::State::learn_world() {
  // The lowest world rank of a node identifies the node.
  const CallDeadline deadline("the introduction of all ranks (MPI_Allgather)");
  Introduction mine{world_rank.value(), mpi::rank(MPI_COMM_WORLD), {}};
  mpi::library_broadcast(&mine.leader, sizeof mine.leader, 0, node_.get());
  put(mine.host, node_name);
  std::vector<Introduction> all(static_cast<std::size_t>(world_size));
  mpi::library_all_gather(&mine, all.data(), sizeof mine, control_.get());
  World world;
  world.self = world_rank;
  for (const auto& one : all) {
    world.leaders.push_back(one.leader);
    world.hosts.emplace_back(one.host.data());
    world.tasks.push_back(one.task);
  }
  auto leaders = world.leaders;
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  node_count = static_cast<int>(leaders.size());
  const auto place = std::lower_bound(leaders.begin(), leaders.end(), mine.leader);
  node_rank = base::NodeRank(static_cast<int>(place - leaders.begin()));
  return world;
}

std::unique_ptr<NodeStatus> MpiRuntime::State::make_node_status(const World& world) {
  if (local_size == 1) return nullptr;
  // Relays: nobody says yet for whom it waits, and one that relays would be blamed.
  MpiGroup node("node", world.neighbours(),
                {&progress_, mpi::dup(node_.get()), mpi::dup(node_.get()), start_timeout_seconds_,
                 Relays::never});
  auto status = NodeStatus::create(node, {local_rank, world_rank, node_name});
  if (status.ok()) return std::move(status).value();
  if (local_rank.value() == 0) {
    base::log::local::warning(
        "comm", "{} (messages inside the node go through MPI, and dead ranks are noticed late)",
        status.failure().text);
  }
  return nullptr;
}

/// MPI_Comm_create_group has no deadline, so members first make sure that all have come, and then
/// that none has given up waiting meanwhile.
void MpiRuntime::State::await_members(const std::string& group_name,
                                      const std::vector<base::Rank>& ranks, int tag,
                                      double timeout_seconds) {
  std::vector<base::Rank> everybody;
  for (int rank = 0; rank < world_size; ++rank) everybody.emplace_back(rank);
  const auto own = std::find(ranks.begin(), ranks.end(), world_rank) - ranks.begin();
  auto stages = arrival_rounds({static_cast<int>(own), static_cast<int>(ranks.size())}, ranks);
  // Number: of the groups of this name, so that it is the same for all members.
  const auto number = ++groups_made_[group_name];
  MpiOperation arrival(
      progress_, {"make_group", group_name, everybody, number, timeout_seconds, -1},
      {control_.get(), first_arrival_tag + tag, &control_broken_}, std::move(stages), {});
  arrival.wait();
}

MpiGroup::Wiring MpiRuntime::State::wire(const std::vector<base::Rank>& ranks, int tag,
                                         const GroupOptions& options) {
  std::vector<int> members;
  for (const auto rank : ranks) members.push_back(rank.value());
  auto collectives = mpi::create_group(control_.get(), members, tag);
  auto messages = mpi::create_group(control_.get(), members, tag);
  return {&progress_, std::move(collectives), std::move(messages), options.timeout_seconds};
}

base::Status MpiRuntime::State::can_share(const std::string& group_name,
                                          const std::vector<base::Rank>& ranks) const {
  for (const auto rank : ranks) {
    if (watch_->world().leaders[rank.index()] != watch_->world().leaders[world_rank.index()]) {
      return base::Failure{
          base::ExitCode::launch,
          base::format("comm.backend = shared cannot serve process group '{}' (rank {} is on {}, "
                       "rank {} on {}); use auto",
                       group_name, world_rank.value(), node_name, rank.value(),
                       watch_->host(rank))};
    }
  }
  if (watch_->status() == nullptr) {
    return base::Failure{base::ExitCode::topology,
                         "ranks of this node cannot share memory; use comm.backend = mpi"};
  }
  return {};
}

base::Result<std::unique_ptr<ProcessGroup>> MpiRuntime::State::make_shared_group(
    ProcessGroup& parent, const GroupOptions& options) {
  auto memory = SharedMemory::create(parent, SharedGroup::bytes_needed(parent.size()));
  if (!memory.ok()) return memory.failure();
  const auto& leaders = watch_->world().leaders;
  std::vector<base::LocalRank> members;
  for (const auto rank : parent.ranks()) {
    // Local ranks follow world ranks, as MPI_Comm_split_type orders them.
    members.emplace_back(static_cast<int>(
        std::count(leaders.begin(), leaders.begin() + rank.value(), leaders[world_rank.index()])));
  }
  auto group = std::make_unique<SharedGroup>(
      parent.name(), parent.ranks(), parent.rank(),
      SharedGroup::Wiring{&progress_, watch_->status(), std::move(memory).value(),
                          std::move(members), options.timeout_seconds});
  group->choose_stores(options.stores, core_sharing_);
  return std::unique_ptr<ProcessGroup>(std::move(group));
}

std::unique_ptr<ProcessGroup> MpiRuntime::State::make_group(std::string group_name,
                                                            std::vector<base::Rank> ranks,
                                                            const GroupOptions& options) {
  TRIREME_EXPECT(std::find(ranks.begin(), ranks.end(), world_rank) != ranks.end(),
                 "a rank makes only groups that it belongs to");
  if (ranks.size() == 1) return make_local_group(std::move(group_name), world_rank);
  const bool share = options.backend == Backend::automatic || options.backend == Backend::shared;
  const auto sharing = can_share(group_name, ranks);
  if (options.backend == Backend::shared) base::success_or_throw(sharing);
  const int tag = group_tag(group_name, ranks);
  await_members(group_name, ranks, tag, options.timeout_seconds);
  auto wiring = wire(ranks, tag, options);
  if (options.backend == Backend::library) {
    return make_library_group(std::move(group_name), std::move(ranks), std::move(wiring));
  }
  auto group =
      std::make_unique<MpiGroup>(std::move(group_name), std::move(ranks), std::move(wiring));
  if (!share || !sharing.ok()) return group;
  auto shared = make_shared_group(*group, options);
  if (shared.ok()) return std::move(shared).value();
  if (options.backend == Backend::shared) throw base::Error(shared.failure());
  base::log::local::warning("comm", "{}; it uses MPI", shared.failure().text);
  return group;
}

}  // namespace trireme::comm
