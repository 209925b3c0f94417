// SPDX-License-Identifier: Apache-2.0
#include "comm/core/progress_engine.hpp"

#include "trireme/base/format.hpp"

#include "comm/core/ranks_text.hpp"

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

bool ProgressEngine::advance() {
  bool moved = false;
  // Loop by index: an operation that fails throws, but none is added or removed meanwhile.
  for (std::size_t i = 0; i < operations_.size(); ++i) {
    if (!operations_[i]->done()) moved = operations_[i]->advance() || moved;
  }
  return moved;
}

bool ProgressEngine::has_enqueued() const {
  return std::any_of(enqueued_.begin(), enqueued_.end(),
                     [](const auto* each) { return !each->empty(); });
}

/// Publishes what this rank waits for to peers that wait for it.
void ProgressEngine::show_enqueued() {
  if (watch_ == nullptr) return;
  for (auto* enqueued : enqueued_) {
    auto* const oldest = enqueued->oldest();
    if (oldest == nullptr || enqueued->waited() < policy_.sleep) continue;
    if (shown_ != oldest) watch_->show_activity("waiting in " + oldest->text());
    shown_ = oldest;
    watch_->check(*oldest);
    return;
  }
}

void ProgressEngine::rest() {
  if (shown_ != nullptr) watch_->show_activity({});
  shown_ = nullptr;
}

void ProgressEngine::watch_enqueued() {
  for (auto* enqueued : enqueued_) {
    auto* const oldest = enqueued->oldest();
    if (oldest == nullptr) continue;
    if (enqueued->waited().count() >= oldest->label().timeout_seconds) {
      give_up(*oldest, enqueued->waited().count());
    }
  }
}

void ProgressEngine::give_up_enqueued() {
  for (auto* enqueued : enqueued_) enqueued->give_up();
}

void ProgressEngine::look() {
  try {
    advance();
    show_enqueued();
    watch_enqueued();
  } catch (...) {
    give_up_enqueued();
    throw;
  }
}

void ProgressEngine::wait(PendingOperation& operation, Reached reached) {
  try {
    wait_unguarded(operation, reached);
  } catch (...) {
    // This rank is about to end, and operations that peers will never finish must not hold its
    // device.
    give_up_enqueued();
    throw;
  }
}

bool ProgressEngine::sleep() {
  if (watch_ == nullptr) {
    std::this_thread::sleep_for(policy_.nap);
    return false;
  }
  const bool all_wake =
      !has_enqueued() && std::all_of(operations_.begin(), operations_.end(), [](const auto* each) {
        return each->done() || each->wakes_waiter();
      });
  const auto armed = watch_->arm();
  const bool moved = advance();
  if (!moved) watch_->sleep(armed, all_wake ? policy_.sleep : policy_.nap);
  watch_->disarm();
  return moved;
}

void ProgressEngine::wait_unguarded(PendingOperation& operation, Reached reached) {
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
    if (idle < policy_.spin) {
      relax();
    } else if (idle < policy_.spin + policy_.yield) {
      sched_yield();
    } else {
      if (watch_ != nullptr && !shown) {
        watch_->show_activity("waiting in " + operation.text());
        shown = true;
      }
      if (watch_ != nullptr) watch_->check(operation);
      watch_enqueued();
      if (sleep()) idle_since = Clock::now();
    }
    const auto waited = clock.waited();
    if (waited.count() >= operation.label().timeout_seconds && !(operation.*reached)()) {
      give_up(operation, waited.count());
    }
  }
  if (shown) watch_->show_activity({});
}

HangReport ProgressEngine::diagnose(const PendingOperation& operation) const {
  if (watch_ != nullptr) return watch_->diagnose_hang(operation);
  HangReport report{operation.missing(), {}, {}};
  std::sort(report.ranks.begin(), report.ranks.end());
  for (const auto rank : report.ranks) {
    report.texts.push_back(base::format("rank {}", rank.value()));
  }
  return report;
}

void ProgressEngine::give_up(const PendingOperation& operation, double waited_seconds) const {
  const auto missing = operation.missing();
  const auto report = diagnose(operation);
  const auto is_missing = [&](base::Rank rank) {
    return std::find(missing.begin(), missing.end(), rank) != missing.end();
  };
  const auto limit = base::duration_text(operation.label().timeout_seconds);
  const auto who = list_text(report.texts);
  std::string cause;
  if (!report.cut_off.empty()) {
    cause = base::format("{} ({} waited {})", report.cut_off, operation.text(), limit);
  } else if (std::all_of(report.ranks.begin(), report.ranks.end(), is_missing)) {
    cause = base::format("{} did not come to {} within {}", who, operation.text(), limit);
  } else {
    // Ranks that this one waits for are waiting themselves.
    cause = base::format("{} did not come, and {} waited {} in turn", who, operation.text(), limit);
  }
  std::vector<int> members;
  for (const auto rank : operation.label().members) members.push_back(rank.value());
  const auto host = watch_ != nullptr && !report.ranks.empty() ? watch_->host(report.ranks.front())
                                                               : std::string{};
  throw PeerError(
      base::format("{} ({}) waited {} for {} (no rank of the group can go on without them; "
                   "comm.timeout = {}); read their logs, or raise comm.timeout if they were busy",
                   operation.text(), ranks_text(members), base::duration_text(waited_seconds), who,
                   limit),
      {std::string(operation.label().operation), std::string(operation.label().group),
       operation.label().number, report.ranks, host, waited_seconds, cause, operation.account()});
}

}  // namespace trireme::comm
