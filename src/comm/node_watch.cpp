#include "node_watch.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"

#include "notice.hpp"

#include <algorithm>
#include <thread>

namespace trireme::comm {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds look_interval{5};
/// Between a neighbour's death and the word that it was the first to go.
constexpr milliseconds moment_of_death{50};
/// How long ranks may take to answer: those that wait do so at once.
constexpr milliseconds patience_of_inquiry{1500};
/// For notices, and for neighbours: together below the second that mpirun waits between asking
/// ranks to end and killing them.
constexpr milliseconds patience_of_notices{300};
constexpr milliseconds patience_of_farewell{400};
/// Groups use tags below (mpi_runtime.cpp).
constexpr int notice_tag = 32000;

}  // namespace

NodeWatch::NodeWatch(std::unique_ptr<Board> board, World world, MPI_Comm control)
    : board_(std::move(board)),
      world_(std::move(world)),
      control_(control),
      lines_(Lifelines::create(world_, control)),
      inquiry_(world_, control, [this](base::Rank rank) { return look(rank); }) {
  if (!board_) return;
  for (int rank = 0; rank < board_->size(); ++rank) {
    const base::LocalRank local(rank);
    processes_.push_back(local == board_->self() ? WatchedProcess{}
                                                 : WatchedProcess(board_->process(local)));
  }
  report_means();
}

void NodeWatch::report_means() const {
  using Means = WatchedProcess::Means;
  if (board_->self().value() != 0) return;
  // All neighbours alike, but for one that has just died.
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

std::optional<base::LocalRank> NodeWatch::neighbour(base::Rank rank) const {
  for (int local = 0; board_ && local < board_->size(); ++local) {
    if (board_->world_rank(base::LocalRank(local)) == rank) return base::LocalRank(local);
  }
  return std::nullopt;
}

bool NodeWatch::is_dead(base::LocalRank rank) const {
  return has_ended(rank) && board_->state(rank) == RankState::running;
}

std::optional<Board::Verdict> NodeWatch::dead_neighbour() {
  for (int local = 0; board_ && local < board_->size(); ++local) {
    const base::LocalRank rank(local);
    if (rank == board_->self() || !is_dead(rank)) continue;
    const auto now = Clock::now();
    // Where the launcher kills all ranks, this one dies before the moment is over.
    if (!death_seen_) death_seen_ = now;
    if (now - *death_seen_ < moment_of_death) return std::nullopt;
    const auto culprit = board_->world_rank(rank);
    const auto activity = board_->activity(rank);
    return Board::Verdict{
        culprit, world_.hosts[culprit.index()],
        base::format("rank {} ({}process {} on {}) died without a word, {} (killed by a signal or "
                     "by the system, perhaps for its memory)",
                     culprit.value(), world_.task_text(culprit), board_->process(rank),
                     world_.hosts[culprit.index()], activity.empty() ? "computing" : activity)};
  }
  return std::nullopt;
}

std::optional<Board::Verdict> NodeWatch::notice() const {
  const auto source = mpi::probe(notice_tag, control_);
  if (!source) return std::nullopt;
  Notice notice;
  auto request = mpi::ireceive(&notice, sizeof notice, *source, notice_tag, control_);
  while (!mpi::test(request, nullptr)) {
  }
  return notice.verdict();
}

std::optional<Board::Verdict> NodeWatch::lost_peer() {
  if (board_) {
    if (auto verdict = board_->verdict()) return verdict;
    if (auto verdict = dead_neighbour()) return verdict;
  }
  if (auto verdict = notice()) return verdict;
  return lines_ ? lines_->lost_peer() : std::nullopt;
}

void NodeWatch::give_up(const PendingOperation& waiting, const Board::Verdict& verdict) {
  const auto& label = waiting.label();
  throw PeerError(base::format("{} cannot finish: {}", waiting.text(), verdict.cause),
                  {std::string(label.operation),
                   std::string(label.group),
                   label.number,
                   {verdict.culprit},
                   verdict.host,
                   0,
                   verdict.cause});
}

void NodeWatch::check(const PendingOperation& waiting) {
  const auto now = Clock::now();
  if (now < next_look_) return;
  next_look_ = now + look_interval;
  if (auto verdict = lost_peer()) {
    if (lines_ && lines_->is_silent()) ask_whose_fault(waiting, *verdict);
    give_up(waiting, *verdict);
  }
  awaited_ = waiting.missing();
  if (board_) board_->set_awaited(awaited_);
  inquiry_.answer();
}

void NodeWatch::ask_whose_fault(const PendingOperation& waiting, Board::Verdict& verdict) {
  const auto until = Clock::now() + patience_of_inquiry;
  inquiry_.begin(waiting.missing(), waiting.text());
  while (!inquiry_.settled() && Clock::now() < until) std::this_thread::sleep_for(milliseconds(1));
  const auto blame = inquiry_.conclude();
  if (blame.cut_off.empty()) return;
  verdict.culprit = blame.ranks.front();
  verdict.host = host(verdict.culprit);
  verdict.cause = base::format("{} ({} was under way)", blame.cut_off, waiting.text());
}

Blame NodeWatch::find_blame(const PendingOperation& waiting) {
  const auto until = Clock::now() + patience_of_inquiry;
  inquiry_.begin(waiting.missing(), waiting.text());
  while (!inquiry_.settled() && Clock::now() < until) {
    if (const auto verdict = lost_peer()) give_up(waiting, *verdict);
    std::this_thread::sleep_for(milliseconds(1));
  }
  return inquiry_.conclude();
}

Sighting NodeWatch::look(base::Rank rank) const {
  using State = Sighting::State;
  const auto self = world_.text(world_.self);
  if (rank == world_.self) {
    return {awaited_.empty() ? State::computing : State::waiting, awaited_, self};
  }
  const auto local = neighbour(rank);
  if (!local) return {};
  const bool halted = board_->state(*local) == RankState::left || has_ended(*local) ||
                      process_state(board_->process(*local)) == 'T';
  auto awaited = board_->awaited(*local);
  auto state = awaited.empty() ? State::computing : State::waiting;
  if (halted) state = State::halted;
  return {state, std::move(awaited), describe(*local)};
}

std::string NodeWatch::describe(base::LocalRank rank) const {
  const auto world_rank = board_->world_rank(rank);
  const int process = board_->process(rank);
  std::string doing = board_->activity(rank);
  if (board_->state(rank) == RankState::left) {
    doing = "has left the run";
  } else if (process_state(process) == 'T') {
    doing = "stopped by a signal";
  } else if (doing.empty()) {
    doing = "in no wait of its own";
  }
  return base::format("rank {} ({}process {} on {}, {})", world_rank.value(),
                      world_.task_text(world_rank), process, host(world_rank), doing);
}

void NodeWatch::show_activity(std::string_view text) {
  if (text.empty()) awaited_.clear();
  if (!board_) return;
  board_->set_activity(text);
  if (text.empty()) board_->set_awaited({});
}

std::uint32_t NodeWatch::arm() {
  return board_ ? board_->arm() : 0;
}

void NodeWatch::sleep(std::uint32_t armed, std::chrono::microseconds at_most) {
  if (board_) {
    board_->sleep(armed, at_most);
  } else {
    std::this_thread::sleep_for(at_most);
  }
}

void NodeWatch::disarm() {
  if (board_) board_->disarm();
}

void NodeWatch::send_notices(const Board::Verdict& verdict, Clock::time_point until) const {
  const Notice notice(verdict);
  std::vector<MPI_Request> requests;
  const auto own_leader = world_.leaders[world_.self.index()];
  for (std::size_t rank = 0; rank < world_.leaders.size(); ++rank) {
    // Without a board, neighbours hear of it the same way.
    const bool neighbouring = board_ && world_.leaders[rank] == own_leader;
    if (neighbouring || rank == world_.self.index()) continue;
    requests.push_back(
        mpi::isend(&notice, sizeof notice, static_cast<int>(rank), notice_tag, control_));
  }
  while (!requests.empty() && Clock::now() < until) {
    std::erase_if(requests, [](MPI_Request& request) { return mpi::test(request, nullptr); });
  }
}

bool NodeWatch::has_ended(base::LocalRank rank) const {
  return processes_[rank.index()].life() == WatchedProcess::Life::ended;
}

void NodeWatch::linger(const Board::Verdict& verdict, Role role, Clock::time_point until) const {
  const bool guilty = verdict.culprit == world_.self;
  const auto waits_for = [&](base::LocalRank rank) {
    if (rank == board_->self() || has_ended(rank)) return false;
    const bool spoken = board_->state(rank) != RankState::running;
    if (board_->world_rank(rank) == verdict.culprit) return spoken;
    if (process_state(board_->process(rank)) == 'T') return false;
    // Launchers kill all ranks when they learn of a failure: the one that tells them ends last,
    // unless the failure is its own, whose exit code shall be the run's.
    return !spoken || (role == Role::first && !guilty);
  };
  const auto pending = [&] {
    for (int rank = 0; rank < board_->size(); ++rank) {
      if (waits_for(base::LocalRank(rank))) return true;
    }
    return false;
  };
  while (Clock::now() < until && pending()) std::this_thread::sleep_for(milliseconds(2));
  // The launcher has a moment to see who ended first.
  if (role == Role::follower) std::this_thread::sleep_for(milliseconds(20));
}

NodeWatch::Role NodeWatch::announce(const Board::Verdict& verdict) {
  const auto until = Clock::now() + patience_of_notices;
  const auto role = !board_ || board_->fail(verdict) ? Role::first : Role::follower;
  if (lines_) lines_->announce(verdict);
  try {
    if (role == Role::first) send_notices(verdict, until);
  } catch (const base::Error& error) {
    base::log::local::warning("comm", "cannot tell other nodes: {}", error.what());
  }
  return role;
}

void NodeWatch::see_off(const Board::Verdict& verdict, Role role) const {
  if (!board_) return;
  linger(verdict, role, Clock::now() + patience_of_farewell);
  if (role == Role::first) end_culprit(verdict);
}

void NodeWatch::end_culprit(const Board::Verdict& verdict) const {
  const auto culprit = neighbour(verdict.culprit);
  if (!culprit || verdict.culprit == world_.self || has_ended(*culprit)) return;
  // A stopped or stuck rank ends by nothing else, and not every launcher ends it.
  processes_[culprit->index()].kill();
}

void NodeWatch::leave() {
  if (board_) board_->leave();
  if (lines_) lines_->leave();
}

}  // namespace trireme::comm
