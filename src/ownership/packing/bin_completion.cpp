// SPDX-License-Identifier: Apache-2.0
#include "ownership/packing/bin_completion.hpp"

#include "ownership/packing/group_kinds.hpp"

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>

namespace trireme::ownership {
namespace {

constexpr double impossible = -std::numeric_limits<double>::infinity();

/// Contents of a bin that are looked at before the search is given up.
constexpr long most_contents = 1'000'000;
/// A bin holds at most so many more, and so many fewer, groups of a kind than its fair part.
constexpr int spread = 2;
constexpr int most_starts = 4;
constexpr int passes_of_start = 20;
/// At a start an item of a part x of a bin is worth x + curve * x^2: large ones go first. One curve
/// fails where the other does not.
constexpr double curves[] = {0.2, 0.05};
/// Gain in worth of items that are left over.
constexpr double gain_of_left = 1.02;
/// The part of what has been learned so far is drawn between its inverse and this.
constexpr double most_noise = 1.5;

/// Items [from, end) of a group that is cut.
struct Rest {
  std::size_t kind = none;
  std::size_t from = 0;
};

/// Content of a bin, behind the rest of the group that the bin before it holds the front of.
struct Content {
  std::vector<int> counts;  ///< whole groups, [kind]
  Rest cut;                 ///< group whose rest goes to the next bin
  Item sum;
  double worth = impossible;
};

class Filling {
 public:
  Filling(std::span<const GroupedItem> items, std::size_t bins)
      : kinds_(group_kinds(items)), item_count_(items.size()), contents_(bins) {}

  bool is_over() const { return looks_ >= most_contents; }

  /// No largest load is below this: groups lie in at most two bins.
  double largest_half() const {
    double largest = 0;
    for (const auto& kind : kinds_.groups) {
      double least = kind.all().load;
      for (const auto& front : kind.until) {
        least = std::min(least, std::max(front.load, kind.all().load - front.load));
      }
      largest = std::max(largest, least);
    }
    return largest;
  }

  bool fill(Item room) {
    room_ = room;
    for (int start = 0; start < most_starts; ++start) {
      const double curve = curves[static_cast<std::size_t>(start) % std::size(curves)];
      for (int pass = 0; pass < passes_of_start; ++pass) {
        if (pass == 0) begin(curve);
        if (fill_once()) return true;
        if (is_over()) return false;
      }
    }
    return false;
  }

  std::vector<Placed> placed() const {
    std::vector<Placed> placed(item_count_);
    std::vector<std::size_t> next(kinds_.groups.size(), 0);
    for (std::size_t bin = 0; bin < contents_.size(); ++bin) {
      const auto& [counts, cut, sum, worth] = contents_[bin];
      for (std::size_t kind = 0; kind < kinds_.groups.size(); ++kind) {
        const auto& [items, until, members, first_cut] = kinds_.groups[kind];
        for (int count = 0; count < counts[kind]; ++count) {
          const auto first = members[next[kind]++];
          for (std::size_t at = 0; at < items.size(); ++at) placed[first + at] = {bin};
        }
      }
      if (cut.kind == none) continue;
      const auto first = kinds_.groups[cut.kind].members[next[cut.kind]++];
      for (std::size_t at = 0; at < kinds_.groups[cut.kind].size(); ++at) {
        placed[first + at] =
            at < cut.from ? Placed{bin, Placed::End::back} : Placed{bin + 1, Placed::End::front};
      }
    }
    return placed;
  }

 private:
  /// Search for the content of a bin that is worth most.
  struct Choice {
    std::vector<std::pair<int, int>> counts_between;
    std::span<const double> next_worth;  ///< [cut], of the next bin, over that without a rest
    Content content;
    Content best;
  };

  double worth_at_start(std::size_t item) const {
    const double part = kinds_.items[item].load / room_.load;
    return part + curve_ * part * part;
  }

  void begin(double curve) {
    curve_ = curve;
    item_worth_.clear();
    for (std::size_t item = 0; item < kinds_.items.size(); ++item) {
      item_worth_.push_back(worth_at_start(item));
    }
  }

  /// One pass. False if groups are left.
  bool fill_once() {
    left_.clear();
    left_sum_ = {};
    for (const auto& kind : kinds_.groups) {
      left_.push_back(static_cast<int>(kind.members.size()));
      left_sum_ = left_sum_ + kind.all() * left_.back();
    }
    left_items_ = kinds_.item_counts;
    Rest rest;
    for (std::size_t bin = 0; bin < contents_.size(); ++bin) {
      add_up_worth();
      const bool last = bin + 1 == contents_.size();
      contents_[bin] = best_content(rest, last ? std::vector<double>{} : worth_of_next());
      if (contents_[bin].worth == impossible) return false;
      take(rest, contents_[bin]);
      rest = contents_[bin].cut;
    }
    bool done = true;
    for (std::size_t item = 0; item < left_items_.size(); ++item) {
      if (left_items_[item] == 0) continue;
      item_worth_[item] *= gain_of_left;
      done = false;
    }
    return done;
  }

  void add_up_worth() {
    group_worth_.clear();
    for (const auto& kind : kinds_.groups) {
      double worth = 0;
      for (const auto item : kind.items) worth += item_worth_[item];
      group_worth_.push_back(worth);
    }
  }

  /// Worth that a cut leaves of the next bin: [cut].
  std::vector<double> worth_of_next() {
    const std::vector<double> free_cuts(kinds_.cuts, 0.0);
    std::vector<double> worth;
    const double whole = best_content({}, free_cuts).worth;
    for (std::size_t kind = 0; kind < kinds_.groups.size(); ++kind) {
      for (std::size_t from = 1; from < kinds_.groups[kind].size(); ++from) {
        worth.push_back(left_[kind] > 0 ? best_content({kind, from}, free_cuts).worth - whole
                                        : impossible);
      }
    }
    return worth;
  }

  /// Groups are cut where `next_worth` says what that costs.
  Content best_content(Rest rest, std::span<const double> next_worth) {
    Choice choice;
    choice.next_worth = next_worth;
    const double part = std::clamp(room_.load / left_sum_.load, 0.0, 1.0);
    for (const int left : left_) {
      const int fair = static_cast<int>(part * left);
      choice.counts_between.emplace_back(std::max(0, fair - spread),
                                         std::min(left, fair + 1 + spread));
    }
    choice.content.counts.assign(left_.size(), 0);
    choice.content.worth = 0;
    if (rest.kind != none) {
      const auto& kind = kinds_.groups[rest.kind];
      choice.content.sum = kind.all() - kind.until[rest.from];
      for (auto at = rest.from; at < kind.size(); ++at) {
        choice.content.worth += item_worth_[kind.items[at]];
      }
    }
    choose_from(0, choice);
    return std::move(choice.best);
  }

  bool fits(const Item& item) const {
    return item.load <= room_.load && item.elements <= room_.elements;
  }

  /// All counts of groups of `kind` and those behind it.
  void choose_from(std::size_t kind, Choice& choice) {
    if (!fits(choice.content.sum) || is_over()) return;
    if (kind + 1 == kinds_.groups.size()) {
      fill_up(choice.content, choice.best);
      cut_one(choice);
      return;
    }
    const auto before = choice.content;
    const auto [least, most] = choice.counts_between[kind];
    for (int count = least; count <= most; ++count) {
      choice.content.counts[kind] = count;
      choice.content.sum = before.sum + kinds_.groups[kind].all() * count;
      choice.content.worth = before.worth + group_worth_[kind] * count;
      choose_from(kind + 1, choice);
    }
    choice.content = before;
  }

  void cut_one(Choice& choice) {
    if (choice.next_worth.empty()) return;
    const auto before = choice.content;
    for (std::size_t at = 0; at < kinds_.groups.size(); ++at) {
      const auto& kind = kinds_.groups[at];
      if (left_[at] <= before.counts[at]) continue;
      double front = 0;
      for (std::size_t from = 1; from < kind.size(); ++from) {
        front += item_worth_[kind.items[from - 1]];
        choice.content.cut = {at, from};
        choice.content.sum = before.sum + kind.until[from];
        choice.content.worth = before.worth + front + choice.next_worth[kind.first_cut + from - 1];
        fill_up(choice.content, choice.best);
      }
    }
    choice.content = before;
  }

  /// Adds as many groups of the last kind as fit.
  void fill_up(Content& content, Content& best) {
    if (!fits(content.sum)) return;
    ++looks_;
    const auto last = kinds_.groups.size() - 1;
    const auto& each = kinds_.groups[last].all();
    const Item room = room_ - content.sum;
    double most = left_[last] - (content.cut.kind == last ? 1 : 0);
    if (each.load > 0) most = std::min(most, room.load / each.load);
    if (each.elements > 0) {
      const std::int64_t whole = room.elements / each.elements;
      most = std::min(most, static_cast<double>(whole));
    }
    const int count = static_cast<int>(most);
    const double worth = content.worth + group_worth_[last] * count;
    if (worth <= best.worth) return;
    best = content;
    best.counts[last] = count;
    best.sum = content.sum + each * count;
    best.worth = worth;
  }

  /// Takes a bin's content from what is left, and learns from the room that it has to spare.
  void take(Rest rest, const Content& content) {
    std::vector<int> taken(kinds_.items.size(), 0);
    const auto add = [&](std::size_t kind, std::size_t from, std::size_t to, int count) {
      for (auto at = from; at < to; ++at) taken[kinds_.groups[kind].items[at]] += count;
    };
    for (std::size_t kind = 0; kind < left_.size(); ++kind) {
      left_[kind] -= content.counts[kind];
      add(kind, 0, kinds_.groups[kind].size(), content.counts[kind]);
    }
    if (rest.kind != none) add(rest.kind, rest.from, kinds_.groups[rest.kind].size(), 1);
    if (content.cut.kind != none) {
      --left_[content.cut.kind];
      add(content.cut.kind, 0, content.cut.from, 1);
    }
    left_sum_ = left_sum_ - content.sum;
    for (std::size_t item = 0; item < taken.size(); ++item) {
      if (taken[item] == 0 || kinds_.items[item].load <= 0) continue;
      const double old = 2 * noise() * left_items_[item] / taken[item];
      const double seen = worth_at_start(item) * room_.load / content.sum.load;
      item_worth_[item] = (old * item_worth_[item] + seen) / (old + 1);
    }
    for (std::size_t item = 0; item < taken.size(); ++item) left_items_[item] -= taken[item];
  }

  double noise() {
    const auto part = static_cast<double>(random_()) / static_cast<double>(std::minstd_rand::max());
    return 1 / most_noise + part * (most_noise - 1 / most_noise);
  }

  GroupKinds kinds_;
  std::size_t item_count_;
  std::vector<Content> contents_;  // [bin]
  Item room_;                      // of each bin
  double curve_ = 0;
  std::vector<double> item_worth_;   // [item kind]
  std::vector<double> group_worth_;  // [kind]
  std::vector<int> left_;            // [kind]
  std::vector<int> left_items_;      // [item kind], those of cut groups too
  Item left_sum_;
  std::minstd_rand random_;  // the standard's numbers: every rank plans the same
  long looks_ = 0;
};

/// No largest load is below this: the mean, and what k + 1 items have at least that share a bin
/// because there are more than k for each.
double least_load(std::span<const GroupedItem> items, std::size_t bins) {
  std::vector<double> loads;
  for (const auto& each : items) loads.push_back(each.item.load);
  std::sort(loads.rbegin(), loads.rend());
  double least = std::accumulate(loads.begin(), loads.end(), 0.0) / static_cast<double>(bins);
  for (std::size_t end = 1; end <= loads.size(); end += bins) {
    const auto sharing = static_cast<std::ptrdiff_t>((end - 1) / bins + 1);
    const auto behind = loads.begin() + static_cast<std::ptrdiff_t>(end);
    least = std::max(least, std::accumulate(behind - sharing, behind, 0.0));
  }
  return least;
}

}  // namespace

std::optional<std::vector<Placed>> fill_bins(std::span<const GroupedItem> items, std::size_t bins,
                                             Item most) {
  std::optional<std::vector<Placed>> best;
  Filling filling(items, bins);
  double least = std::max(least_load(items, bins), filling.largest_half());
  // Bisection: what is not found is taken to be impossible.
  while (most.load > least * good_over_least && !filling.is_over()) {
    const double load = (least + most.load) / 2;
    // Rounding of sums shall not decide.
    if (!filling.fill({load * (1 + 1e-9), most.elements})) {
      least = load;
    } else {
      best = filling.placed();
      std::vector<double> loads(bins, 0.0);
      for (std::size_t at = 0; at < items.size(); ++at) {
        loads[(*best)[at].bin] += items[at].item.load;
      }
      most.load = *std::max_element(loads.begin(), loads.end());
    }
  }
  return best;
}

}  // namespace trireme::ownership
