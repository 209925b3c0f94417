#include "progress.hpp"

#include "trireme/base/format.hpp"

#include <sched.h>

#include <algorithm>
#include <thread>

namespace trireme::comm {
namespace {

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

std::string list_text(const std::vector<std::string>& items) {
  constexpr std::size_t most = 8;
  if (items.size() <= most) return base::format("{}", base::join(items, ", "));
  const std::vector<std::string> first(items.begin(), items.begin() + most);
  return base::format("{} and {} more", base::join(first, ", "), items.size() - most);
}

}  // namespace

bool Progress::advance() {
  bool moved = false;
  // By index: an operation that fails throws, but none is added or removed on the way.
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (!operations_[i]->done()) moved = operations_[i]->advance() || moved;
  }
  return moved;
}

bool Progress::has_joined() const {
  return std::any_of(joined_.begin(), joined_.end(),
                     [](const auto* each) { return !each->empty(); });
}

/// Whoever misses this rank learns for whom it waits itself.
void Progress::show_joined() {
  if (watch_ == nullptr) return;
  for (auto* joined : joined_) {
    auto* const oldest = joined->oldest();
    if (oldest == nullptr || joined->waited() < patience_.sleep) continue;
    if (shown_ != oldest) watch_->show_activity("waiting in " + oldest->text());
    shown_ = oldest;
    watch_->check(*oldest);
    return;
  }
}

void Progress::rest() {
  if (shown_ != nullptr) watch_->show_activity({});
  shown_ = nullptr;
}

void Progress::watch_joined() {
  for (auto* joined : joined_) {
    auto* const oldest = joined->oldest();
    if (oldest == nullptr) continue;
    if (joined->waited().count() >= oldest->label().timeout_seconds) {
      give_up(*oldest, joined->waited().count());
    }
  }
}

void Progress::give_up_joined() {
  for (auto* joined : joined_) joined->give_up();
}

void Progress::look() {
  try {
    advance();
    show_joined();
    watch_joined();
  } catch (...) {
    give_up_joined();
    throw;
  }
}

void Progress::wait(PendingOperation& operation, Reached reached) {
  try {
    wait_unguarded(operation, reached);
  } catch (...) {
    // The rank is about to end, and what peers will never finish must not hold its device.
    give_up_joined();
    throw;
  }
}

bool Progress::sleep() {
  if (watch_ == nullptr) {
    std::this_thread::sleep_for(patience_.nap);
    return false;
  }
  const bool all_ring =
      !has_joined() && std::all_of(operations_.begin(), operations_.end(),
                                   [](const auto* each) { return each->done() || each->rings(); });
  const auto armed = watch_->arm();
  const bool moved = advance();
  if (!moved) watch_->sleep(armed, all_ring ? patience_.sleep : patience_.nap);
  watch_->disarm();
  return moved;
}

void Progress::wait_unguarded(PendingOperation& operation, Reached reached) {
  WaitClock clock;
  auto idle_since = Clock::now();
  bool shown = false;
  while (!(operation.*reached)()) {
    if (advance()) {
      idle_since = Clock::now();
      clock.waited(idle_since);
      continue;
    }
    const auto now = Clock::now();
    const auto idle = now - idle_since;
    if (idle < patience_.spin) {
      relax();
    } else if (idle < patience_.spin + patience_.yield) {
      sched_yield();
    } else {
      if (watch_ != nullptr && !shown) {
        watch_->show_activity("waiting in " + operation.text());
        shown = true;
      }
      if (watch_ != nullptr) watch_->check(operation);
      watch_joined();
      if (sleep()) idle_since = Clock::now();
    }
    const auto waited = clock.waited();
    if (waited.count() >= operation.label().timeout_seconds && !(operation.*reached)()) {
      give_up(operation, waited.count());
    }
  }
  if (shown) watch_->show_activity({});
}

Blame Progress::blame(const PendingOperation& operation) const {
  if (watch_ != nullptr) return watch_->find_blame(operation);
  Blame blame{operation.missing(), {}, {}};
  std::sort(blame.ranks.begin(), blame.ranks.end());
  for (const auto rank : blame.ranks) {
    blame.texts.push_back(base::format("rank {}", rank.value()));
  }
  return blame;
}

void Progress::give_up(const PendingOperation& operation, double waited_seconds) const {
  const auto missing = operation.missing();
  const auto blame = this->blame(operation);
  const auto is_missing = [&](base::Rank rank) {
    return std::find(missing.begin(), missing.end(), rank) != missing.end();
  };
  const auto limit = base::duration_text(operation.label().timeout_seconds);
  const auto who = list_text(blame.texts);
  std::string cause;
  if (!blame.cut_off.empty()) {
    cause = base::format("{} ({} waited {})", blame.cut_off, operation.text(), limit);
  } else if (std::all_of(blame.ranks.begin(), blame.ranks.end(), is_missing)) {
    cause = base::format("{} did not come to {} within {}", who, operation.text(), limit);
  } else {
    // Whom this rank misses waits itself.
    cause = base::format("{} did not come, and {} waited {} in turn", who, operation.text(), limit);
  }
  std::vector<int> members;
  for (const auto rank : operation.label().members) members.push_back(rank.value());
  const auto host =
      watch_ != nullptr && !blame.ranks.empty() ? watch_->host(blame.ranks.front()) : std::string{};
  throw PeerError(
      base::format("{} (ranks {}) waited {} for {} (no rank of the group can go on without them; "
                   "comm.timeout = {}); read their logs, or raise comm.timeout if they were busy",
                   operation.text(), base::join(members, ", "), base::duration_text(waited_seconds),
                   who, limit),
      {std::string(operation.label().operation), std::string(operation.label().group),
       operation.label().number, blame.ranks, host, waited_seconds, cause, operation.account()});
}

}  // namespace trireme::comm
