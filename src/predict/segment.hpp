// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/step.hpp"
#include "trireme/predict/time.hpp"

#include <algorithm>
#include <vector>

/// Operations of a rank one after the other, as its stream runs them. Private to the room.
namespace trireme::predict {

struct Operation {
  /// compute, or tensor: a collective that the stream waits for.
  Part part = Part::compute;
  Time time{};
  /// Time that the host takes to issue it.
  Time issue{};
};

/// Sum of operations. An operation begins when the one before has ended and the host has issued it;
/// so the last one ends at max(begin + busy, host's begin + lag): the greatest of all ways through
/// them is one of these two, wherever it changes from the host to the stream.
struct Segment {
  Time compute{};
  Time tensor{};
  /// Time that the host takes to issue all of them.
  Time issue{};
  /// Time from the host's begin to the end, on a stream that waits for the host alone.
  Time lag{};

  Time busy() const { return compute + tensor; }

  void append(const Operation& operation) {
    issue += operation.issue;
    lag = std::max(lag, issue) + operation.time;
    (operation.part == Part::tensor ? tensor : compute) += operation.time;
  }
  void append(const Segment& next) {
    lag = std::max(lag + next.busy(), issue + next.lag);
    issue += next.issue;
    compute += next.compute;
    tensor += next.tensor;
  }
};

inline Segment sum_of(const std::vector<Operation>& operations) {
  Segment segment;
  for (const auto& operation : operations) segment.append(operation);
  return segment;
}

}  // namespace trireme::predict
