// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/step.hpp"
#include "trireme/predict/time.hpp"

#include <algorithm>
#include <cstddef>
#include <vector>

/// Operations of a rank in the order in which they are issued. Private to the room.
namespace trireme::predict {

struct Operation {
  enum class Kind {
    whole,  ///< the stream goes on behind it
    start,  ///< a collective, which the stream goes on beside
    join    ///< the stream waits for one that has started
  };

  /// compute, or tensor: a collective of tensor-parallel ranks, which run one after the other.
  Part part = Part::compute;
  Time time{};
  /// Time that the host takes to issue it.
  Time issue{};
  Kind kind = Kind::whole;
  /// With join: which of those that have started, from 0.
  std::size_t started = 0;
};

/// Sum of operations. An operation begins when what it waits for has ended and the host has issued
/// it; so the last one ends at max(begin + busy, host's begin + lag): the greatest of all ways
/// through them is one of these two, wherever it changes from the host to a stream.
struct Segment {
  Time compute{};
  /// Collectives, without what the stream computes beside them.
  Time tensor{};
  /// Time that the host takes to issue all of them.
  Time issue{};
  /// Time from the host's begin to the end, on streams that wait for the host alone.
  Time lag{};

  Time busy() const { return compute + tensor; }

  void append(const Segment& next) {
    lag = std::max(lag + next.busy(), issue + next.lag);
    issue += next.issue;
    compute += next.compute;
    tensor += next.tensor;
  }
};

/// The longest ways to a point of a stream: from its own begin, and from the host's.
struct LongestWays {
  Time from_begin{};
  Time from_host{};

  void wait_for(const LongestWays& other) {
    from_begin = std::max(from_begin, other.from_begin);
    from_host = std::max(from_host, other.from_host);
  }
  void wait_for_host(Time issue) { from_host = std::max(from_host, issue); }
  void run(Time time) {
    from_begin += time;
    from_host += time;
  }
};

/// All that starts is joined.
inline Segment sum_of(const std::vector<Operation>& operations) {
  Segment segment;
  LongestWays stream;
  LongestWays links;
  std::vector<LongestWays> started;
  for (const auto& operation : operations) {
    segment.issue += operation.issue;
    if (operation.kind == Operation::Kind::join) {
      stream.wait_for(started.at(operation.started));
      continue;
    }
    if (operation.part != Part::tensor) {
      stream.wait_for_host(segment.issue);
      stream.run(operation.time);
      segment.compute += operation.time;
      continue;
    }
    links.wait_for(stream);
    links.wait_for_host(segment.issue);
    links.run(operation.time);
    if (operation.kind == Operation::Kind::start) {
      started.push_back(links);
    } else {
      stream = links;
    }
  }
  segment.tensor = stream.from_begin - segment.compute;
  segment.lag = stream.from_host;
  return segment;
}

}  // namespace trireme::predict
