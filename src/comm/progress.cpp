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

bool Progress::sleep() {
  if (watch_ == nullptr) {
    std::this_thread::sleep_for(patience_.nap);
    return false;
  }
  const bool all_ring = std::all_of(operations_.begin(), operations_.end(),
                                    [](const auto* each) { return each->done() || each->rings(); });
  const auto armed = watch_->arm();
  const bool moved = advance();
  if (!moved) watch_->sleep(armed, all_ring ? patience_.sleep : patience_.nap);
  watch_->disarm();
  return moved;
}

void Progress::wait(PendingOperation& operation) {
  const auto begin = Clock::now();
  auto idle_since = begin;
  bool shown = false;
  while (!operation.done()) {
    if (advance()) {
      idle_since = Clock::now();
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
      if (sleep()) idle_since = Clock::now();
    }
    const std::chrono::duration<double> waited = now - begin;
    if (waited.count() >= operation.label().timeout_seconds && !operation.done()) {
      give_up(operation, waited.count());
    }
  }
  if (shown) watch_->show_activity({});
}

void Progress::give_up(const PendingOperation& operation, double waited_seconds) const {
  auto missing = operation.missing();
  // Who waits for a stopped rank holds up others in turn: the cause is where the chain begins.
  if (const auto stopped = watch_ != nullptr ? watch_->stopped() : missing; !stopped.empty()) {
    missing = stopped;
  }
  std::sort(missing.begin(), missing.end());
  std::vector<std::string> who;
  for (const auto rank : missing) {
    who.push_back(watch_ != nullptr ? watch_->describe(rank)
                                    : base::format("rank {}", rank.value()));
  }
  std::vector<int> members;
  for (const auto rank : operation.label().members) members.push_back(rank.value());
  const auto host =
      watch_ != nullptr && !missing.empty() ? watch_->host(missing.front()) : std::string{};
  const auto cause =
      base::format("{} did not come to {} within {}", list_text(who), operation.text(),
                   base::duration_text(operation.label().timeout_seconds));
  throw PeerError(
      base::format("{} (ranks {}) waited {} for {} (no rank of the group can go on without them; "
                   "comm.timeout = {}); read their logs, or raise comm.timeout if they were busy",
                   operation.text(), base::join(members, ", "), base::duration_text(waited_seconds),
                   list_text(who), base::duration_text(operation.label().timeout_seconds)),
      {std::string(operation.label().operation), std::string(operation.label().group),
       operation.label().number, missing, host, waited_seconds, cause});
}

}  // namespace trireme::comm
