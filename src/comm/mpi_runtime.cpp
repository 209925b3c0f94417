#include "trireme/comm/mpi_runtime.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "mpi_group.hpp"

#include <sched.h>

#include <algorithm>
#include <exception>
#include <numeric>

namespace trireme::comm {
namespace {

int mpi_level(ThreadLevel level) {
  switch (level) {
    case ThreadLevel::funneled:
      return MPI_THREAD_FUNNELED;
    case ThreadLevel::serialized:
      return MPI_THREAD_SERIALIZED;
    case ThreadLevel::multiple:
      return MPI_THREAD_MULTIPLE;
  }
  return MPI_THREAD_FUNNELED;
}

const char* level_name(int level) {
  if (level == MPI_THREAD_SINGLE) return "MPI_THREAD_SINGLE";
  if (level == MPI_THREAD_FUNNELED) return "MPI_THREAD_FUNNELED";
  return level == MPI_THREAD_SERIALIZED ? "MPI_THREAD_SERIALIZED" : "MPI_THREAD_MULTIPLE";
}

/// Tells apart groups that are made at the same time: FNV-1a over name and members.
int group_tag(const std::string& group_name, const std::vector<base::Rank>& ranks) {
  std::uint32_t hash = 2166136261U;
  const auto mix = [&](std::uint32_t value) { hash = (hash ^ value) * 16777619U; };
  for (const char letter : group_name) mix(static_cast<unsigned char>(letter));
  for (const auto rank : ranks) mix(static_cast<std::uint32_t>(rank.value()));
  return static_cast<int>(hash % 16384U);
}

int usable_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

}  // namespace

const char* name(Backend backend) {
  switch (backend) {
    case Backend::automatic:
      return "auto";
    case Backend::mpi:
      return "mpi";
    case Backend::shared:
      return "shared";
    case Backend::library:
      return "library";
  }
  return "?";
}

class MpiRuntime::State {
 public:
  State();

  std::unique_ptr<ProcessGroup> make_group(std::string group_name, std::vector<base::Rank> ranks,
                                           const GroupOptions& options);

  base::Rank world_rank;
  int world_size = 1;
  base::LocalRank local_rank;
  int local_size = 1;
  base::NodeRank node_rank;
  int node_count = 1;
  std::string node_name;
  std::function<void(const RankFailure&)> listener;

 private:
  void learn_nodes();
  void await_members(const std::string& group_name, const std::vector<base::Rank>& ranks, int tag,
                     double timeout_seconds);

  /// For what ranks tell each other outside of any group.
  mpi::Communicator control_;
  mpi::Communicator node_;
  Progress progress_;
  std::uint64_t groups_made_ = 0;
};

MpiRuntime::State::State()
    : world_rank(mpi::rank(MPI_COMM_WORLD)),
      world_size(mpi::size(MPI_COMM_WORLD)),
      node_name(mpi::processor_name()),
      control_(mpi::duplicate(MPI_COMM_WORLD)),
      node_(mpi::split_shared(MPI_COMM_WORLD)) {
  local_rank = base::LocalRank(mpi::rank(node_.get()));
  local_size = mpi::size(node_.get());
  learn_nodes();
  if (local_size > usable_cpus()) {
    // Whoever spins keeps the rank that it waits for from the core.
    progress_.use(nullptr, {std::chrono::microseconds(0), std::chrono::microseconds(20),
                            std::chrono::microseconds(50)});
  }
}

void MpiRuntime::State::learn_nodes() {
  // The lowest world rank of a node stands for the node.
  std::vector<int> leaders(static_cast<std::size_t>(world_size));
  int leader = world_rank.value();
  mpi::library_broadcast(&leader, sizeof leader, 0, node_.get());
  mpi::library_all_gather(&leader, leaders.data(), sizeof leader, control_.get());
  std::sort(leaders.begin(), leaders.end());
  leaders.erase(std::unique(leaders.begin(), leaders.end()), leaders.end());
  node_count = static_cast<int>(leaders.size());
  const auto place = std::lower_bound(leaders.begin(), leaders.end(), leader);
  node_rank = base::NodeRank(static_cast<int>(place - leaders.begin()));
}

/// MPI_Comm_create_group has no deadline, so members first make sure that all have come.
void MpiRuntime::State::await_members(const std::string& group_name,
                                      const std::vector<base::Rank>& ranks, int tag,
                                      double timeout_seconds) {
  std::vector<base::Rank> everybody;
  for (int rank = 0; rank < world_size; ++rank) everybody.emplace_back(rank);
  Stage stage;
  for (const auto rank : ranks) {
    if (rank != world_rank) stage.steps.push_back({rank.value(), {}, rank.value(), {}});
  }
  std::vector<Stage> stages;
  stages.push_back(std::move(stage));
  MpiOperation arrival(progress_,
                       {"make_group", group_name, everybody, ++groups_made_, timeout_seconds, -1},
                       {control_.get(), tag}, std::move(stages), {});
  arrival.wait();
}

std::unique_ptr<ProcessGroup> MpiRuntime::State::make_group(std::string group_name,
                                                            std::vector<base::Rank> ranks,
                                                            const GroupOptions& options) {
  TRIREME_EXPECT(std::find(ranks.begin(), ranks.end(), world_rank) != ranks.end(),
                 "a rank makes only groups that it belongs to");
  if (ranks.size() == 1) return make_local_group(std::move(group_name), world_rank);
  const int tag = group_tag(group_name, ranks);
  await_members(group_name, ranks, tag, options.timeout_seconds);
  std::vector<int> members;
  for (const auto rank : ranks) members.push_back(rank.value());
  MpiGroup::Wiring wiring{&progress_, mpi::create_group(control_.get(), members, tag),
                          mpi::create_group(control_.get(), members, tag), options.timeout_seconds};
  switch (options.backend) {
    case Backend::library:
      return make_library_group(std::move(group_name), std::move(ranks), std::move(wiring));
    case Backend::automatic:
    case Backend::mpi:
    case Backend::shared:
      break;
  }
  return std::make_unique<MpiGroup>(std::move(group_name), std::move(ranks), std::move(wiring));
}

MpiRuntime::MpiRuntime(ThreadLevel level) {
  TRIREME_EXPECT(!mpi::initialized(), "MPI starts once in a process");
  const int wanted = mpi_level(level);
  const int provided = mpi::init_thread(wanted);
  if (provided < wanted) {
    mpi::finalize();
    throw base::Error(
        base::ExitCode::launch,
        base::format("MPI gives thread level {} where {} is needed (calls would race); use an MPI "
                     "library built with thread support",
                     level_name(provided), level_name(wanted)));
  }
  state_ = std::make_unique<State>();
}

MpiRuntime::~MpiRuntime() {
  state_.reset();
  if (std::uncaught_exceptions() > 0 || mpi::finalized()) return;
  try {
    mpi::finalize();
  } catch (const std::exception& error) {
    base::log::local::warning("comm", "{}", error.what());
  }
}

base::Rank MpiRuntime::world_rank() const {
  return state_->world_rank;
}
int MpiRuntime::world_size() const {
  return state_->world_size;
}
base::LocalRank MpiRuntime::local_rank() const {
  return state_->local_rank;
}
int MpiRuntime::local_size() const {
  return state_->local_size;
}
base::NodeRank MpiRuntime::node_rank() const {
  return state_->node_rank;
}
int MpiRuntime::node_count() const {
  return state_->node_count;
}
const std::string& MpiRuntime::node_name() const {
  return state_->node_name;
}

std::unique_ptr<ProcessGroup> MpiRuntime::make_group(std::string name,
                                                     std::vector<base::Rank> ranks,
                                                     const GroupOptions& options) {
  return state_->make_group(std::move(name), std::move(ranks), options);
}

std::unique_ptr<ProcessGroup> MpiRuntime::make_world(const GroupOptions& options) {
  std::vector<base::Rank> ranks;
  for (int rank = 0; rank < world_size(); ++rank) ranks.emplace_back(rank);
  return make_group("world", std::move(ranks), options);
}

void MpiRuntime::on_failure(std::function<void(const RankFailure&)> listener) {
  state_->listener = std::move(listener);
}

base::ExitCode MpiRuntime::end_in_failure(const std::exception_ptr& error) {
  RankFailure failure;
  failure.first = world_rank();
  failure.host = node_name();
  bool orderly = false;
  try {
    std::rethrow_exception(error);
  } catch (const AgreedError& agreed) {
    failure.code = agreed.code();
    failure.text = agreed.what();
    failure.first = agreed.first();
    orderly = true;
  } catch (const PeerError& lost) {
    failure.code = lost.code();
    failure.text = lost.what();
    failure.absence = lost.absence();
    if (!lost.absence().ranks.empty()) failure.first = lost.absence().ranks.front();
  } catch (const base::Error& system) {
    failure.code = system.code();
    failure.text = system.what();
  } catch (const std::exception& other) {
    failure.text = other.what();
  } catch (...) {
    failure.text = "an exception of unknown type";
  }
  base::log::local::error("comm", "{}", failure.text);
  if (state_->listener) state_->listener(failure);
  if (!orderly && world_size() > 1) mpi::abort(static_cast<int>(failure.code));
  return failure.code;
}

}  // namespace trireme::comm
