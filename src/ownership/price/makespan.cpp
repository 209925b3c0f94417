// SPDX-License-Identifier: Apache-2.0
#include "ownership/price/makespan.hpp"

#include <algorithm>
#include <cmath>
#include <queue>
#include <utility>
#include <vector>

namespace trireme::ownership {
namespace {

/// Products of which a task is one: a rank may turn to another task behind each.
constexpr int products_of_whole = 18;

/// Order of the work that a rank can do: others wait for columns and [n, n] work.
enum class Urgency { column, square, whole };

struct Task {
  int rank = 0;
  double seconds = 0;
  Urgency urgency = Urgency::whole;
  /// Tasks that it needs, and those that need it, after `delay`.
  int needs = 0;
  double delay = 0;
  std::vector<std::size_t> followers;
};

class Timeline {
 public:
  Timeline(std::span<const OwnedTensor> tensors, const MachineSpeeds& machine, int ranks)
      : tensors_(tensors), machine_(machine), idle_(static_cast<std::size_t>(ranks), true) {
    ready_.resize(static_cast<std::size_t>(ranks));
  }

  void add_whole(const MatrixOwner& owner) {
    add_products({}, {owner.ranges.front().rank, Urgency::whole},
                 {tensors_[owner.tensor].flops, products_of_whole}, 0);
  }

  void add_shared(const MatrixOwner& owner) {
    const auto& tensor = tensors_[owner.tensor];
    const auto n = static_cast<double>(tensor.shape.shorter());
    const double delay = machine_.collective_seconds + 4 * n * n / machine_.node_bytes;
    std::vector<std::size_t> square;  // its last product, of the round before
    for (std::size_t round = 0; round < tensor.split.column.size(); ++round) {
      std::vector<std::size_t> columns;
      for (const auto& range : owner.ranges) {
        const auto count = static_cast<double>(range.end - range.begin);
        columns.push_back(
            add({range.rank, Urgency::column}, count * tensor.split.column[round], delay));
        link(square, columns.back());
      }
      if (round == tensor.split.square.size()) return;
      const double flops = tensor.split.square[round];
      const int products = std::max(1, static_cast<int>(std::lround(flops / (n * n * n))));
      square = {add_products(columns, {owner.square_ranks[round], Urgency::square},
                             {flops, products}, delay)};
    }
  }

  double end() {
    for (std::size_t task = 0; task < tasks_.size(); ++task) {
      if (tasks_[task].needs == 0) events_.push({0, Event::Kind::ready, task});
    }
    double last = 0;
    while (!events_.empty()) {
      const Event event = events_.top();
      events_.pop();
      last = std::max(last, event.seconds);
      const auto rank = static_cast<std::size_t>(tasks_[event.task].rank);
      if (event.kind == Event::Kind::ready) {
        ready_[rank].emplace(tasks_[event.task].urgency, event.task);
      } else {
        idle_[rank] = true;
        finish(event);
      }
      start_next(rank, event.seconds);
    }
    return last;
  }

 private:
  struct Event {
    double seconds;
    enum class Kind { done, ready } kind;
    std::size_t task;
    bool operator>(const Event& other) const {
      if (seconds != other.seconds) return seconds > other.seconds;
      return kind != other.kind ? kind > other.kind : task > other.task;
    }
  };
  using Turn = std::pair<Urgency, std::size_t>;

  struct Where {
    int rank;
    Urgency urgency;
  };
  struct Products {
    double flops;
    int count;
  };

  std::size_t add(const Where& where, double flops, double delay) {
    Task task;
    task.rank = where.rank;
    task.seconds = flops / machine_.product_flops;
    task.urgency = where.urgency;
    task.delay = delay;
    tasks_.push_back(std::move(task));
    return tasks_.size() - 1;
  }

  /// Products one after the other behind `before`; the last is the result.
  std::size_t add_products(std::vector<std::size_t> before, const Where& where,
                           const Products& products, double delay) {
    for (int product = 0; product < products.count; ++product) {
      const bool last = product + 1 == products.count;
      const auto task = add(where, products.flops / products.count, last ? delay : 0);
      link(before, task);
      before = {task};
    }
    return before.front();
  }

  void link(const std::vector<std::size_t>& from, std::size_t to) {
    for (const auto task : from) {
      tasks_[task].followers.push_back(to);
      ++tasks_[to].needs;
    }
  }

  void finish(const Event& event) {
    for (const auto follower : tasks_[event.task].followers) {
      if (--tasks_[follower].needs == 0) {
        events_.push({event.seconds + tasks_[event.task].delay, Event::Kind::ready, follower});
      }
    }
  }

  void start_next(std::size_t rank, double now) {
    if (!idle_[rank] || ready_[rank].empty()) return;
    const auto task = ready_[rank].top().second;
    ready_[rank].pop();
    idle_[rank] = false;
    events_.push({now + tasks_[task].seconds, Event::Kind::done, task});
  }

  std::span<const OwnedTensor> tensors_;
  const MachineSpeeds& machine_;
  std::vector<Task> tasks_;
  std::vector<bool> idle_;
  std::vector<std::priority_queue<Turn, std::vector<Turn>, std::greater<>>> ready_;
  std::priority_queue<Event, std::vector<Event>, std::greater<>> events_;
};

}  // namespace

double makespan(const Plan& plan, std::span<const OwnedTensor> tensors,
                const MachineSpeeds& machine) {
  std::vector<const MatrixOwner*> order;
  for (const auto& owner : plan.matrices) order.push_back(&owner);
  std::stable_sort(order.begin(), order.end(), [&](const MatrixOwner* a, const MatrixOwner* b) {
    if (a->is_shared() != b->is_shared()) return a->is_shared();
    return tensors[a->tensor].flops > tensors[b->tensor].flops;
  });
  Timeline timeline(tensors, machine, plan.ranks());
  for (const auto* owner : order) {
    if (owner->is_shared()) {
      timeline.add_shared(*owner);
    } else {
      timeline.add_whole(*owner);
    }
  }
  return timeline.end();
}

}  // namespace trireme::ownership
