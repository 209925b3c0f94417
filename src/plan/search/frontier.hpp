// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "candidates.hpp"
#include "objective.hpp"

#include <cstddef>
#include <map>
#include <queue>
#include <utility>
#include <vector>

/// Private to the room.
namespace trireme::plan {

/// A layout to look at: an arrangement with a set of what it computes again.
struct Candidate {
  Score bound;
  std::size_t arrangement = 0;
  LayoutChoice choice;

  /// Lowest bound first, in a heap.
  bool operator<(const Candidate& other) const {
    if (bound != other.bound) return bound > other.bound;
    return std::pair(arrangement, choice.order()) >
           std::pair(other.arrangement, other.choice.order());
  }
};

/// Layouts that are next: arrangements in their order, and what came of those before.
class Frontier {
 public:
  explicit Frontier(std::size_t arrangements) : arrangements_(arrangements) {}

  bool has_arrangement() const { return next_ < arrangements_; }
  std::size_t arrangement() const { return next_; }
  void pop_arrangement() { ++next_; }

  bool has_candidate() const { return !candidates_.empty(); }
  const Candidate& candidate() const { return candidates_.top(); }
  void pop_candidate() { candidates_.pop(); }
  void push(const Candidate& candidate) { candidates_.push(candidate); }

  void add_fit(const Candidate& candidate) {
    fits_[candidate.arrangement].push_back(candidate.choice.recompute);
  }
  /// Whether the same fits with less to compute again.
  bool is_beaten(const Candidate& candidate) const {
    const auto found = fits_.find(candidate.arrangement);
    if (found == fits_.end()) return false;
    for (const auto& less : found->second) {
      if (computes_no_less(candidate.choice.recompute, less)) return true;
    }
    return false;
  }

 private:
  std::size_t arrangements_;
  std::size_t next_ = 0;
  std::priority_queue<Candidate> candidates_;
  std::map<std::size_t, std::vector<config::Recompute>> fits_;
};

}  // namespace trireme::plan
