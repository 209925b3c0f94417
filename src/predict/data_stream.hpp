// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/predict/time.hpp"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

/// Collectives of data-parallel ranks: one after the other on a stream of their own. Private to the
/// room.
namespace trireme::predict {

class DataStream {
 public:
  void add_member() { ++members_; }

  /// A member has issued its collective number `index` at `ready`: a collective begins when all
  /// have, and the one before has ended.
  void issue(std::size_t index, Time ready, Time time) {
    if (index >= collectives_.size()) collectives_.resize(index + 1);
    auto& collective = collectives_[index];
    collective.ready = std::max(collective.ready, ready);
    if (++collective.issued < members_) return;
    collective.begin = std::max(collective.ready, free_);
    collective.end = collective.begin + time;
    free_ = collective.end;
    ++completed_;
  }

  std::optional<Time> end_of(std::size_t index) const {
    if (index >= completed_) return std::nullopt;
    return collectives_[index].end;
  }

  /// When all that was issued has ended.
  Time free() const {
    TRIREME_ENSURE(completed_ == collectives_.size(), "all members issue all collectives");
    return free_;
  }

  /// Calls with begin and end of each collective that has run.
  template <typename Call>
  void each(const Call& call) const {
    for (std::size_t index = 0; index < completed_; ++index) {
      call(collectives_[index].begin, collectives_[index].end);
    }
  }

  /// Time of [begin, end) in which collectives run; moves `from` past those that end before.
  Time overlap(Time begin, Time end, std::size_t& from) const {
    Time sum{};
    for (std::size_t index = from; index < completed_; ++index) {
      const auto& collective = collectives_[index];
      if (collective.end <= begin) {
        from = index + 1;
        continue;
      }
      if (collective.begin >= end) break;
      sum += std::min(end, collective.end) - std::max(begin, collective.begin);
    }
    return sum;
  }

 private:
  struct Collective {
    int issued = 0;
    Time ready{};
    Time begin{};
    Time end{};
  };

  int members_ = 0;
  Time free_{};
  std::vector<Collective> collectives_;
  /// Members issue in one order, so collectives are complete in it.
  std::size_t completed_ = 0;
};

}  // namespace trireme::predict
