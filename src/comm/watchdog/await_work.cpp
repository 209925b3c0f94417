// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/await_work.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/peer_error.hpp"

#include <algorithm>
#include <array>

namespace trireme::comm {
namespace {

using std::chrono::milliseconds;

/// Times between two votes: short at first, because most work ends soon.
constexpr milliseconds first_interval{20};
constexpr milliseconds last_interval{500};
constexpr milliseconds log_interval{60'000};

/// The state of one rank's work, as it knows it.
class Waiting {
 public:
  explicit Waiting(const LocalWork& work) : work_(work), progress_(work.progress()) {}

  /// Waits until the work ends, or for `interval`.
  void wait(milliseconds interval) {
    // Slices are counted, not the clock: a process that is stopped by a signal does not get late.
    for (auto left = interval; left.count() > 0 && !has_ended_; left -= first_interval) {
      has_ended_ = work_.ended(first_interval);
      idle_ += first_interval;
      const auto progress = work_.progress();
      if (progress == progress_) continue;
      progress_ = progress;
      idle_ = milliseconds(0);
    }
  }
  bool goes_on() const { return !has_ended_; }
  bool stands_still() const { return goes_on() && idle_ >= work_.limit; }

 private:
  const LocalWork& work_;
  std::uint64_t progress_;
  milliseconds idle_{0};
  bool has_ended_ = false;
};

/// The lowest ranks of those to whom it applies; -1: none.
struct Lowest {
  int going_on;
  int standing_still;
};

Lowest vote(ProcessGroup& group, const Waiting& waiting) {
  const auto mark = [&](bool applies) { return applies ? group.size() - group.rank() : 0; };
  std::array<std::int32_t, 2> marks{mark(waiting.goes_on()), mark(waiting.stands_still())};
  group.all_reduce({marks.data(), device::DType::i32, {2}}, ReduceOp::max);
  const auto rank = [&](std::int32_t most) { return most == 0 ? -1 : group.size() - most; };
  return {rank(marks[0]), rank(marks[1])};
}

[[noreturn]] void give_up(const ProcessGroup& group, const LocalWork& work, int member) {
  const auto rank = group.ranks()[static_cast<std::size_t>(member)];
  const double seconds = std::chrono::duration<double>(work.limit).count();
  const auto cause =
      base::format("rank {} is still {}, which has not moved for {} (its storage does not answer)",
                   rank.value(), work.text, base::duration_text(seconds));
  const auto text = base::format("{}; look at the storage and the log of its node", cause);
  if (member == group.rank()) throw base::Error(base::ExitCode::checkpoint, text);
  throw PeerError(text, {"wait for files", group.name(), 0, {rank}, {}, seconds, cause});
}

}  // namespace

void await_work(ProcessGroup& group, const LocalWork& work) {
  Waiting waiting(work);
  milliseconds since_log{0};
  for (auto interval = first_interval;; interval = std::min(2 * interval, last_interval)) {
    waiting.wait(interval);
    const auto lowest = vote(group, waiting);
    if (lowest.standing_still >= 0) give_up(group, work, lowest.standing_still);
    if (lowest.going_on < 0) return;
    since_log += interval;
    if (since_log < log_interval) continue;
    since_log = milliseconds(0);
    const auto rank = group.ranks()[static_cast<std::size_t>(lowest.going_on)];
    base::log::info("comm", "rank {} is still {}, and the others wait for it", rank.value(),
                    work.text);
  }
}

}  // namespace trireme::comm
