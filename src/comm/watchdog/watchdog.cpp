// SPDX-License-Identifier: Apache-2.0
#include "comm/watchdog/watchdog.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "comm/watchdog/failure_message.hpp"

#include <unistd.h>

#include <algorithm>
#include <thread>

namespace trireme::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds check_interval{5};
/// Time between a neighbour's death and its report as the first to die.
constexpr milliseconds death_report_delay{50};
/// Longest wait for replies: ranks that wait reply at once.
constexpr milliseconds limit_of_diagnosis{1500};
/// Longest waits for failure messages and for neighbours: together below the second that mpirun
/// waits between asking ranks to end and killing them.
constexpr milliseconds limit_of_failure_messages{300};
constexpr milliseconds limit_of_goodbye{400};
/// Tag on the control communicator; groups use tags below (mpi/runtime.cpp).
constexpr int failure_tag = 32000;

}  // namespace

Watchdog::Watchdog(std::unique_ptr<NodeStatus> status, World world, MPI_Comm control)
    : status_(std::move(status)),
      world_(std::move(world)),
      control_(control),
      tcp_(TcpLiveness::create(world_, control)),
      diagnosis_(world_, control, [this](base::Rank rank) { return status_of(rank); }) {
  if (!status_) return;
  for (int rank = 0; rank < status_->size(); ++rank) {
    const base::LocalRank local(rank);
    processes_.push_back(local == status_->self() ? WatchedProcess{}
                                                  : WatchedProcess(status_->process(local)));
  }
  warn_of_late_detection();
}

void Watchdog::warn_of_late_detection() const {
  using Means = WatchedProcess::Means;
  if (status_->self().value() != 0) return;
  // Means of detection: the same for all neighbours, except one that has just died.
  auto worst = Means::descriptor;
  for (std::size_t local = 1; local < processes_.size(); ++local) {
    worst = std::max(worst, processes_[local].means());
  }
  if (worst == Means::descriptor) return;
  base::log::local::warning(
      "comm", "pidfd_open does not serve on {} (Linux before 5.3, or a filter of system calls): {}",
      world_.hosts[world_.self.index()],
      worst == Means::start_time ? "the ends of ranks are seen in /proc instead"
                                 : "a rank that dies there is noticed only after comm.timeout");
}

std::optional<base::LocalRank> Watchdog::neighbour(base::Rank rank) const {
  for (int local = 0; status_ && local < status_->size(); ++local) {
    if (status_->world_rank(base::LocalRank(local)) == rank) return base::LocalRank(local);
  }
  return std::nullopt;
}

bool Watchdog::is_dead(base::LocalRank rank) const {
  return has_ended(rank) && status_->state(rank) == RankState::running;
}

std::optional<FailureCause> Watchdog::dead_neighbour() {
  for (int local = 0; status_ && local < status_->size(); ++local) {
    const base::LocalRank rank(local);
    if (rank == status_->self() || !is_dead(rank)) continue;
    const auto now = Clock::now();
    // Delay: where the launcher kills all ranks, this one ends before it is over.
    if (!death_seen_) death_seen_ = now;
    if (now - *death_seen_ < death_report_delay) return std::nullopt;
    const auto dead = status_->world_rank(rank);
    const auto activity = status_->activity(rank);
    return FailureCause{
        dead, world_.hosts[dead.index()],
        base::format("rank {} ({}process {} on {}) died without a word, {} (killed by a signal or "
                     "by the system, perhaps for its memory)",
                     dead.value(), world_.task_text(dead), status_->process(rank),
                     world_.hosts[dead.index()], activity.empty() ? "computing" : activity)};
  }
  return std::nullopt;
}

std::optional<FailureCause> Watchdog::received_failure() const {
  const auto source = mpi::probe(failure_tag, control_);
  if (!source) return std::nullopt;
  FailureMessage message;
  auto request = mpi::ireceive(&message, sizeof message, *source, failure_tag, control_);
  while (!mpi::test(request, nullptr)) {
  }
  return message.cause();
}

std::optional<FailureCause> Watchdog::lost_peer() {
  if (status_) {
    if (auto failure = status_->failure()) return failure;
    if (auto failure = dead_neighbour()) return failure;
  }
  if (auto failure = received_failure()) return failure;
  return tcp_ ? tcp_->lost_peer() : std::nullopt;
}

void Watchdog::give_up(const PendingOperation& waiting, const FailureCause& cause) {
  const auto& label = waiting.label();
  throw PeerError(base::format("{} cannot finish: {}", waiting.text(), cause.text),
                  {std::string(label.operation),
                   std::string(label.group),
                   label.number,
                   {cause.rank},
                   cause.host,
                   0,
                   cause.text});
}

void Watchdog::check(const PendingOperation& waiting) {
  const auto now = Clock::now();
  if (now < next_check_) return;
  next_check_ = now + check_interval;
  if (auto failure = lost_peer()) {
    if (tcp_ && tcp_->is_silent()) find_cut_off_side(waiting, *failure);
    give_up(waiting, *failure);
  }
  awaited_ = waiting.missing();
  if (status_) status_->set_awaited(awaited_);
  diagnosis_.reply();
}

void Watchdog::find_cut_off_side(const PendingOperation& waiting, FailureCause& cause) {
  const auto until = Clock::now() + limit_of_diagnosis;
  diagnosis_.start(waiting.missing(), waiting.text());
  while (!diagnosis_.complete() && Clock::now() < until)
    std::this_thread::sleep_for(milliseconds(1));
  const auto report = diagnosis_.report();
  if (report.cut_off.empty()) return;
  cause.rank = report.ranks.front();
  cause.host = host(cause.rank);
  cause.text = base::format("{} ({} was under way)", report.cut_off, waiting.text());
}

HangReport Watchdog::diagnose_hang(const PendingOperation& waiting) {
  const auto until = Clock::now() + limit_of_diagnosis;
  diagnosis_.start(waiting.missing(), waiting.text());
  while (!diagnosis_.complete() && Clock::now() < until) {
    if (const auto failure = lost_peer()) give_up(waiting, *failure);
    std::this_thread::sleep_for(milliseconds(1));
  }
  return diagnosis_.report();
}

RankStatus Watchdog::status_of(base::Rank rank) const {
  using State = RankStatus::State;
  if (rank == world_.self) {
    return {awaited_.empty() ? State::computing : State::waiting, awaited_,
            text_of(rank, ::getpid(), activity_)};
  }
  const auto local = neighbour(rank);
  if (!local) return {};
  const bool halted = status_->state(*local) == RankState::left || has_ended(*local) ||
                      process_state(status_->process(*local)) == 'T';
  auto awaited = status_->awaited(*local);
  auto state = awaited.empty() ? State::computing : State::waiting;
  if (halted) state = State::halted;
  return {state, std::move(awaited), describe(*local)};
}

std::string Watchdog::describe(base::LocalRank rank) const {
  const auto world_rank = status_->world_rank(rank);
  const int process = status_->process(rank);
  std::string doing = status_->activity(rank);
  if (status_->state(rank) == RankState::left) {
    doing = "has left the run";
  } else if (process_state(process) == 'T') {
    doing = "stopped by a signal";
  }
  return text_of(world_rank, process, doing);
}

std::string Watchdog::text_of(base::Rank rank, int process, const std::string& doing) const {
  return base::format("rank {} ({}process {} on {}, {})", rank.value(), world_.task_text(rank),
                      process, host(rank), doing.empty() ? "in no wait of its own" : doing);
}

void Watchdog::show_activity(std::string_view text) {
  activity_ = text;
  if (text.empty()) awaited_.clear();
  if (!status_) return;
  status_->set_activity(text);
  if (text.empty()) status_->set_awaited({});
}

std::uint32_t Watchdog::arm() {
  return status_ ? status_->arm() : 0;
}

void Watchdog::sleep(std::uint32_t armed, std::chrono::microseconds at_most) {
  if (status_) {
    status_->sleep(armed, at_most);
  } else {
    std::this_thread::sleep_for(at_most);
  }
}

void Watchdog::disarm() {
  if (status_) status_->disarm();
}

void Watchdog::send_failure_messages(const FailureCause& cause, Clock::time_point until) const {
  const FailureMessage message(cause);
  std::vector<MPI_Request> requests;
  const auto own_leader = world_.leaders[world_.self.index()];
  const auto send_to = [&](bool leaders) {
    for (std::size_t rank = 0; rank < world_.leaders.size() && Clock::now() < until; ++rank) {
      const bool is_leader = world_.leaders[rank] == static_cast<int>(rank);
      // Without a status page, neighbours get messages too.
      const bool neighbouring = status_ && world_.leaders[rank] == own_leader;
      if (is_leader != leaders || neighbouring || rank == world_.self.index()) continue;
      requests.push_back(
          mpi::isend(&message, sizeof message, static_cast<int>(rank), failure_tag, control_));
    }
  };
  // Leaders first: each tells its own node, however many ranks there is no time for.
  send_to(true);
  send_to(false);
  while (!requests.empty() && Clock::now() < until) {
    std::erase_if(requests, [](MPI_Request& request) { return mpi::test(request, nullptr); });
  }
}

bool Watchdog::has_ended(base::LocalRank rank) const {
  return processes_[rank.index()].life() == WatchedProcess::Life::ended;
}

void Watchdog::wait_for_ends(const FailureCause& cause, Role role, Clock::time_point until) const {
  const bool own_failure = cause.rank == world_.self;
  const auto waits_for = [&](base::LocalRank rank) {
    if (rank == status_->self() || has_ended(rank)) return false;
    const bool spoken = status_->state(rank) != RankState::running;
    if (status_->world_rank(rank) == cause.rank) return spoken;
    if (process_state(status_->process(rank)) == 'T') return false;
    // Launchers kill all ranks when they detect a failure: the rank that reports it ends last,
    // unless the failure is its own, whose exit code shall be the run's.
    return !spoken || (role == Role::first && !own_failure);
  };
  const auto pending = [&] {
    for (int rank = 0; rank < status_->size(); ++rank) {
      if (waits_for(base::LocalRank(rank))) return true;
    }
    return false;
  };
  while (Clock::now() < until && pending()) std::this_thread::sleep_for(milliseconds(2));
  // Head start that lets the launcher see which rank ended first.
  if (role == Role::follower) std::this_thread::sleep_for(milliseconds(20));
}

Watchdog::Role Watchdog::announce(const FailureCause& cause) {
  const auto until = Clock::now() + limit_of_failure_messages;
  const auto role = !status_ || status_->fail(cause) ? Role::first : Role::follower;
  if (tcp_) tcp_->announce(cause);
  try {
    if (role == Role::first) send_failure_messages(cause, until);
  } catch (const base::Error& error) {
    base::log::local::warning("comm", "cannot tell other nodes: {}", error.what());
  }
  return role;
}

void Watchdog::wait_for_neighbours(const FailureCause& cause, Role role) const {
  if (!status_) return;
  wait_for_ends(cause, role, Clock::now() + limit_of_goodbye);
  if (role == Role::first) kill_hung(cause);
}

void Watchdog::kill_hung(const FailureCause& cause) const {
  const auto hung = neighbour(cause.rank);
  if (!hung || cause.rank == world_.self || has_ended(*hung)) return;
  // Kill: a stopped or stuck rank does not end otherwise, and not every launcher ends it.
  processes_[hung->index()].kill();
}

void Watchdog::leave() {
  if (status_) status_->leave();
  if (tcp_) tcp_->leave();
}

}  // namespace trireme::comm
