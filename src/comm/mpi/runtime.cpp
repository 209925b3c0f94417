// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/log_file.hpp"
#include "trireme/base/path.hpp"
#include "trireme/comm/mpi_runtime.hpp"

#include "comm/mpi/call_deadline.hpp"
#include "comm/mpi/runtime_state.hpp"
#include "comm/watchdog/sigterm_grace.hpp"

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <exception>
#include <thread>

namespace trireme::comm {

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

MpiRuntime::MpiRuntime(const StartOptions& options) {
  TRIREME_EXPECT(!mpi::initialized(), "MPI starts once in a process");
  CallDeadline::set_limit(options.timeout_seconds);
  const auto begin = std::chrono::steady_clock::now();
  const auto passed = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  };
  // Order: before any other thread exists that could take the signal.
  defer_sigterm();
  const int provided = mpi::init_thread(MPI_THREAD_FUNNELED);
  init_seconds_ = passed();
  if (provided < MPI_THREAD_FUNNELED) {
    mpi::finalize();
    throw base::Error(
        base::ExitCode::launch,
        "MPI gives thread level MPI_THREAD_SINGLE where MPI_THREAD_FUNNELED is needed (calls would "
        "race); use an MPI library built with thread support");
  }
  state_ = std::make_unique<State>(options);
  start_seconds_ = passed();
}

MpiRuntime::~MpiRuntime() {
  const bool unwinding = std::uncaught_exceptions() > 0;
  // A rank that unwinds by an exception has not left in good order.
  if (state_ && !unwinding) state_->watch().leave();
  state_.reset();
  if (unwinding || mpi::finalized()) return;
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
int MpiRuntime::task_of(base::Rank rank) const {
  return state_->watch().world().tasks[rank.index()];
}
base::Rank MpiRuntime::first_process() const {
  return state_->watch().world().first_process();
}
base::LocalRank MpiRuntime::local_rank() const {
  return state_->local_rank;
}
int MpiRuntime::local_size() const {
  return state_->local_size;
}
std::vector<base::Rank> MpiRuntime::node_ranks() const {
  return state_->watch().world().neighbours();
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

std::string MpiRuntime::activity() const {
  const auto* status = state_->watch().status();
  return status == nullptr ? std::string{} : status->activity(local_rank());
}

void MpiRuntime::publish(const PublishedNumbers& numbers) {
  if (auto* const status = state_->watch().status()) return status->publish(numbers);
  const std::lock_guard lock(state_->published_mutex);
  state_->published = numbers;
}

PublishedNumbers MpiRuntime::published(base::LocalRank rank) const {
  if (const auto* status = state_->watch().status()) return status->published(rank);
  const std::lock_guard lock(state_->published_mutex);
  return rank == local_rank() ? state_->published : PublishedNumbers{};
}

ProgressEngine& MpiRuntime::progress() {
  return state_->progress();
}

void MpiRuntime::on_failure(std::function<void(const RankFailure&)> listener) {
  state_->listener = std::move(listener);
}

base::ExitCode MpiRuntime::note_end(base::ExitCode code) {
  CallDeadline::set_exit_code(code);
  return code;
}

namespace {

/// "config" of ".../src/config/config.cpp".
std::string room_of(const std::source_location& where) {
  const std::string path = where.file_name();
  constexpr std::string_view sources = "src/";
  const auto begin = path.rfind(sources);
  if (begin == std::string::npos) return "runtime";
  const auto room = begin + sources.size();
  const auto end = path.find('/', room);
  return end == std::string::npos ? "runtime" : path.substr(room, end - room);
}

/// Failure of this rank as an exception describes it.
RankFailure describe(const std::exception_ptr& error, base::Rank self, const std::string& node) {
  RankFailure failure;
  failure.first = self;
  failure.host = node;
  try {
    std::rethrow_exception(error);
  } catch (const AgreedError& agreed) {
    failure.code = agreed.code();
    failure.text = failure.cause = agreed.what();
    failure.first = agreed.first();
    failure.failed_count = agreed.failed_count();
    failure.room = room_of(agreed.where());
  } catch (const PeerError& lost) {
    failure.code = lost.code();
    failure.text = lost.what();
    failure.room = "comm";
    failure.absence = lost.absence();
    failure.cause = failure.absence.cause;
    if (!failure.absence.ranks.empty()) failure.first = failure.absence.ranks.front();
  } catch (const base::Error& system) {
    failure.code = system.code();
    failure.text = system.what();
    failure.room = room_of(system.where());
  } catch (const std::filesystem::filesystem_error& unusable) {
    const auto said = base::failure_of(unusable);
    failure.code = said.code;
    failure.text = said.text;
  } catch (const std::exception& other) {
    failure.text = other.what();
  } catch (...) {
    failure.text = "an exception of unknown type";
  }
  if (failure.cause.empty()) {
    failure.cause = base::format("rank {} (on {}) failed: {}", self.value(), node, failure.text);
  }
  return failure;
}

/// All ranks of the world throw this exception together.
bool is_orderly(const std::exception_ptr& error, int world_size) {
  try {
    std::rethrow_exception(error);
  } catch (const AgreedError& agreed) {
    return agreed.group_size() == world_size;
  } catch (...) {
    return false;
  }
}

/// Time that a failed rank may take to log its failure: its log may be on a file system that hangs.
constexpr std::chrono::seconds last_words{5};

/// Time that its threads may take to end after that: what they hold is given back, such as the lock
/// of the run, unless a file system keeps them. Less than neighbours wait for this rank to be the
/// first that the launcher sees end.
constexpr std::chrono::milliseconds last_joins{200};

void end_after(base::ExitCode code, std::chrono::seconds time) {
  std::thread([code, time] {
    std::this_thread::sleep_for(time);
    std::_Exit(static_cast<int>(code));
  }).detach();
}

/// MPI_Abort makes the launcher end ranks of other nodes that cannot end themselves, but it does
/// not come back: where it hangs, this rank ends by itself a moment later.
[[noreturn]] void abort_elsewhere(base::ExitCode code) {
  end_after(code, std::chrono::seconds(1));
  mpi::abort(static_cast<int>(code));
}

/// Writes the failure to the log and, where no other rank reports it on stderr, to stderr.
void write_down(const RankFailure& failure,
                const std::function<void(const RankFailure&)>& listener) {
  using base::log::Level;
  if (failure.voice == Voice::every_rank) {
    base::log::write(Level::error, failure.room, failure.text);
  } else if (listener) {
    // The listener prints the line.
    base::log::write_to_file(Level::error, failure.room, failure.text);
  } else {
    base::log::write_once(Level::error, failure.room, failure.text);
  }
  if (const auto& account = failure.absence.account; !account.empty()) {
    base::log::local::warning("comm", "{}", base::join(account, "\n"));
  }
  if (!listener) return;
  try {
    listener(failure);
  } catch (const std::exception& error) {
    base::log::local::warning("comm", "what follows a failure has failed itself: {}", error.what());
  } catch (...) {
    base::log::local::warning("comm", "what follows a failure has failed itself");
  }
}

}  // namespace

void MpiRuntime::announce_failure(const std::exception_ptr& error) {
  const bool orderly = world_size() == 1 || is_orderly(error, world_size());
  if (orderly || state_->announced) return;
  auto failure = failure_of(error);
  // Launchers end all ranks as soon as one has ended: each still logs its line.
  std::signal(SIGTERM, SIG_IGN);
  end_after(failure.code, last_words);
  // Announcement before anything that a file system could hold up: peers that are not notified wait
  // for comm.timeout.
  const auto role = state_->watch().announce({failure.first, failure.host, failure.cause});
  failure.is_first_of_node = role == Watchdog::Role::first;
  state_->announced = {failure, role};
  write_down(failure, state_->listener);
  // All is said: neighbours wait for this rank to be the first to end. The state lives as long as
  // the process, which does not return from end_in_failure().
  std::thread([&state = *state_, code = failure.code] {
    std::this_thread::sleep_for(last_joins);
    if (!state.has_unwound) std::_Exit(static_cast<int>(code));
  }).detach();
}

RankFailure MpiRuntime::failure_of(const std::exception_ptr& error) const {
  auto failure = describe(error, world_rank(), node_name());
  failure.host = state_->watch().host(failure.first);
  failure.first_task = task_of(failure.first);
  return failure;
}

base::ExitCode MpiRuntime::end_in_failure(const std::exception_ptr& error) {
  announce_failure(error);
  if (!state_->announced) {
    auto failure = failure_of(error);
    failure.voice = Voice::first_rank;
    write_down(failure, state_->listener);
    return note_end(failure.code);
  }
  // From here on its wait has a limit of its own, after which hung ranks are killed and other nodes
  // aborted.
  state_->has_unwound = true;
  const auto& [failure, role] = *state_->announced;
  state_->watch().wait_for_neighbours({failure.first, failure.host, failure.cause}, role);
  const bool alone = node_count() == 1 && state_->watch().status() != nullptr;
  if (role == Watchdog::Role::first && !alone) abort_elsewhere(failure.code);
  std::_Exit(static_cast<int>(failure.code));
}

}  // namespace trireme::comm
