// SPDX-License-Identifier: Apache-2.0
#include "comm/mpi/rounds.hpp"

#include <algorithm>

namespace trireme::comm {
namespace {

/// Distance to the rank above in the tree: the lowest bit of the own number.
int distance_above(int rank) {
  return rank & -rank;
}

/// Bytes of `count` parts from `first` on, which go on at the first rank behind the last.
std::vector<std::span<std::byte>> spans_of(std::byte* whole, std::span<const std::size_t> begins,
                                           int first, int count) {
  const int size = static_cast<int>(begins.size()) - 1;
  const auto span_of = [&](int from, int to) {
    const auto begin = begins[static_cast<std::size_t>(from)];
    return std::span<std::byte>{whole + begin, begins[static_cast<std::size_t>(to)] - begin};
  };
  const int end = std::min(size, first + count);
  std::vector<std::span<std::byte>> spans{span_of(first, end)};
  if (first + count > size) spans.push_back(span_of(0, first + count - size));
  std::erase_if(spans, [](const auto& span) { return span.empty(); });
  return spans;
}

/// Stages of one rank are alike whatever the root: numbers are counted from it.
Position counted_from(const Position& at, int root) {
  return {(at.rank - root + at.size) % at.size, at.size};
}

Stage to_children(const Position& at, int root, std::span<const std::byte> bytes) {
  Stage stage;
  auto children = children_of(at);
  // The farthest has most ranks below it.
  std::reverse(children.begin(), children.end());
  for (const int child : children) stage.steps.push_back({(child + root) % at.size, bytes, -1, {}});
  return stage;
}

}  // namespace

std::vector<int> children_of(const Position& at) {
  std::vector<int> children;
  const int limit = at.rank == 0 ? at.size : distance_above(at.rank);
  for (int distance = 1; distance < limit && at.rank + distance < at.size; distance *= 2) {
    children.push_back(at.rank + distance);
  }
  return children;
}

std::vector<Stage> gather_rounds(const Position& at, std::byte* whole,
                                 std::span<const std::size_t> begins) {
  std::vector<Stage> stages;
  for (int held = 1; held < at.size; held *= 2) {
    const int count = std::min(held, at.size - held);
    Stage stage;
    for (const auto part : spans_of(whole, begins, at.rank, count)) {
      stage.steps.push_back({at.before(held), part, -1, {}});
    }
    for (const auto part : spans_of(whole, begins, at.after(held), count)) {
      stage.steps.push_back({-1, {}, at.after(held), part});
    }
    stages.push_back(std::move(stage));
  }
  return stages;
}

std::vector<Stage> barrier_rounds(const Position& at) {
  std::vector<Stage> stages;
  if (at.is_direct()) {
    auto& stage = stages.emplace_back();
    for (int distance = 1; distance < at.size; ++distance) {
      stage.steps.push_back({at.after(distance), {}, at.before(distance), {}});
    }
    return stages;
  }
  for (int distance = 1; distance < at.size; distance *= 2) {
    stages.push_back({{{at.after(distance), {}, at.before(distance), {}}}, {}, false});
  }
  return stages;
}

std::vector<Stage> arrival_rounds(const Position& at, std::span<const base::Rank> members) {
  const auto number_of = [&](int position) {
    return position < 0 ? position : members[static_cast<std::size_t>(position)].value();
  };
  auto stages = barrier_rounds(at);
  for (auto& stage : stages) {
    for (auto& step : stage.steps) {
      step.to = number_of(step.to);
      step.from = number_of(step.from);
    }
  }
  const auto once = stages;
  stages.insert(stages.end(), once.begin(), once.end());
  return stages;
}

std::vector<Stage> broadcast_rounds(const Position& at, int root, std::span<std::byte> bytes) {
  const auto own = counted_from(at, root);
  std::vector<Stage> stages;
  if (own.rank != 0) {
    const int above = (own.rank - distance_above(own.rank) + root) % at.size;
    stages.push_back({{{-1, {}, above, bytes}}, {}, false});
  }
  stages.push_back(to_children(own, root, bytes));
  return stages;
}

std::vector<Stage> combine_rounds(const Position& at, std::span<std::byte> bytes,
                                  std::byte* staging,
                                  const std::function<void(const std::byte*)>& combine) {
  const auto children = children_of(at);
  std::vector<Stage> stages(1);
  for (std::size_t child = 0; child < children.size(); ++child) {
    stages[0].steps.push_back(
        {-1, {}, children[child], {staging + child * bytes.size(), bytes.size()}});
  }
  stages[0].finish = [combine, staging, count = children.size(), size = bytes.size()] {
    for (std::size_t child = 0; child < count; ++child) combine(staging + child * size);
  };
  if (at.rank != 0) {
    stages.push_back({{{at.rank - distance_above(at.rank), bytes, -1, {}}}, {}, false});
  }
  for (auto& stage : broadcast_rounds(at, 0, bytes)) stages.push_back(std::move(stage));
  return stages;
}

}  // namespace trireme::comm
