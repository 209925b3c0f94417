// SPDX-License-Identifier: Apache-2.0
#include "predict/segment.hpp"

#include "trireme/base/philox.hpp"

#include "time_text.hpp"

#include <catch2/catch.hpp>

using namespace trireme::predict;

namespace {

/// End of operations that are run one by one.
Time one_by_one(const std::vector<Operation>& operations, Time begin, Time host) {
  Time end = begin;
  for (const auto& operation : operations) {
    host += operation.issue;
    end = std::max(end, host) + operation.time;
  }
  return end;
}

std::vector<Operation> random_operations(std::uint64_t stream, std::size_t count) {
  std::vector<Operation> operations;
  for (std::size_t index = 0; index < count; ++index) {
    const auto number = [&](std::uint64_t salt) {
      const double drawn = trireme::base::philox_normal(salt, stream, index);
      return Time(static_cast<std::int64_t>(1000 * std::abs(drawn)));
    };
    operations.push_back({index % 3 == 0 ? Part::tensor : Part::compute, number(1), number(2)});
  }
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

TEST_CASE("segments joined are the segment of all their operations") {
  for (std::uint64_t stream = 0; stream < 100; ++stream) {
    const auto first = random_operations(2 * stream, 5);
    const auto second = random_operations(2 * stream + 1, 7);
    auto joined = sum_of(first);
    joined.append(sum_of(second));
    auto all = first;
    all.insert(all.end(), second.begin(), second.end());
    const auto whole = sum_of(all);
    CHECK(joined.compute == whole.compute);
    CHECK(joined.tensor == whole.tensor);
    CHECK(joined.issue == whole.issue);
    CHECK(joined.lag == whole.lag);
  }
}
