// SPDX-License-Identifier: Apache-2.0
#include "predict/segment.hpp"

#include "trireme/base/philox.hpp"

#include "time_text.hpp"

#include <catch2/catch.hpp>

#include <algorithm>

using namespace trireme::predict;

namespace {

/// End of operations that are run one by one, collectives on a stream of their own.
Time one_by_one(const std::vector<Operation>& operations, Time begin, Time host) {
  Time end = begin;
  Time links{};
  std::vector<Time> started;
  for (const auto& operation : operations) {
    host += operation.issue;
    if (operation.kind == Operation::Kind::join) {
      end = std::max(end, started.at(operation.started));
    } else if (operation.part == Part::compute) {
      end = std::max(end, host) + operation.time;
    } else {
      links = std::max({links, end, host}) + operation.time;
      if (operation.kind == Operation::Kind::start) {
        started.push_back(links);
      } else {
        end = links;
      }
    }
  }
  return end;
}

/// Every third is a collective, of which every other one is started, and joined two later.
std::vector<Operation> random_operations(std::uint64_t stream, std::size_t count) {
  std::vector<Operation> operations;
  std::size_t started = 0;
  std::vector<std::size_t> open;
  const auto join = [&](std::size_t most) {
    while (open.size() > most) {
      operations.push_back(
          {.part = Part::tensor, .kind = Operation::Kind::join, .started = open.front()});
      open.erase(open.begin());
    }
  };
  for (std::size_t index = 0; index < count; ++index) {
    const auto number = [&](std::uint64_t salt) {
      const double drawn = trireme::base::philox_normal(salt, stream, index);
      return Time(static_cast<std::int64_t>(1000 * std::abs(drawn)));
    };
    operations.push_back({index % 3 == 0 ? Part::tensor : Part::compute, number(1), number(2)});
    if (index % 2 == 0 && operations.back().part == Part::tensor) {
      operations.back().kind = Operation::Kind::start;
      open.push_back(started++);
    }
    join(2);
  }
  join(0);
  return operations;
}

}  // namespace

TEST_CASE("a segment ends when its operations do, one by one") {
  for (std::uint64_t stream = 0; stream < 200; ++stream) {
    const auto operations = random_operations(stream, 1 + stream % 17);
    const auto segment = sum_of(operations);
    for (const std::int64_t begin : {0, 500, 5000}) {
      for (const std::int64_t host : {0, 700, 9000}) {
        const auto end = std::max(Time(begin) + segment.busy(), Time(host) + segment.lag);
        CHECK(end == one_by_one(operations, Time(begin), Time(host)));
      }
    }
  }
}

TEST_CASE("what starts takes the time that nothing beside it hides") {
  using Kind = Operation::Kind;
  const auto compute = [](std::int64_t time) { return Operation{Part::compute, Time(time), {}}; };
  const auto start = [](std::int64_t time) {
    return Operation{.part = Part::tensor, .time = Time(time), .kind = Kind::start};
  };
  const auto join = [](std::size_t which) {
    return Operation{.part = Part::tensor, .kind = Kind::join, .started = which};
  };
  // 10-30 beside 10-25: 5 are waited for.
  const auto some = sum_of({compute(10), start(20), compute(15), join(0), compute(7)});
  CHECK(some.compute == Time(32));
  CHECK(some.tensor == Time(5));
  // The second collective begins at 30, when the first has ended: 30-42, beside 10-35.
  const auto two = sum_of({compute(10), start(20), start(12), compute(25), join(0), join(1)});
  CHECK(two.tensor == Time(7));
  CHECK(sum_of({start(20), join(0), compute(30)}).tensor == Time(20));
  CHECK(sum_of({start(20), compute(30), join(0)}).tensor == Time(0));
}

TEST_CASE("segments joined are the segment of all their operations") {
  for (std::uint64_t stream = 0; stream < 100; ++stream) {
    const auto first = random_operations(2 * stream, 5);
    const auto second = random_operations(2 * stream + 1, 7);
    auto joined = sum_of(first);
    joined.append(sum_of(second));
    auto all = first;
    const auto starts = std::count_if(first.begin(), first.end(), [](const Operation& each) {
      return each.kind == Operation::Kind::start;
    });
    for (auto operation : second) {
      operation.started += static_cast<std::size_t>(starts);
      all.push_back(operation);
    }
    const auto whole = sum_of(all);
    CHECK(joined.compute == whole.compute);
    CHECK(joined.tensor == whole.tensor);
    CHECK(joined.issue == whole.issue);
    CHECK(joined.lag == whole.lag);
  }
}
