// SPDX-License-Identifier: Apache-2.0
#include "trireme/layout/box.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>
#include <set>

using namespace trireme::layout;

namespace {

/// Row-major index, inside the whole tensor, of every element of a box, in the box's order.
std::vector<std::int64_t> indices(const Box& box, const Shape& shape) {
  std::vector<std::int64_t> result;
  for (std::int64_t element = 0; element < element_count(box); ++element) {
    std::int64_t rest = element;
    std::int64_t index = 0;
    std::int64_t stride = 1;
    for (std::size_t d = shape.size(); d-- > 0;) {
      index += (box.offset[d] + rest % box.length[d]) * stride;
      rest /= box.length[d];
      stride *= shape[d];
    }
    result.push_back(index);
  }
  return result;
}

class Draw {
 public:
  std::int64_t number(std::int64_t low, std::int64_t high) {
    return std::uniform_int_distribution<std::int64_t>(low, high)(engine_);
  }
  /// Ones are as likely as all other lengths together: they are where strides go wrong.
  Shape shape() {
    Shape result(static_cast<std::size_t>(number(0, 4)));
    for (auto& length : result) length = number(0, 1) == 0 ? 1 : number(2, 5);
    return result;
  }
  Box box(const Shape& shape) {
    Box result = whole(shape);
    for (std::size_t d = 0; d < shape.size(); ++d) {
      if (number(0, 2) == 0) continue;  // whole in this dimension
      result.offset[d] = number(0, shape[d] - 1);
      result.length[d] = number(1, shape[d] - result.offset[d]);
    }
    return result;
  }

 private:
  std::mt19937_64 engine_{20240229};
};

/// The fewest contiguous boxes that make [begin, end), by trying every way to cut the range.
std::size_t fewest_boxes(const Shape& shape, std::int64_t begin, std::int64_t end) {
  const auto is_box = [&](std::int64_t from, std::int64_t to) {
    // The smallest box around the elements has as many elements as they are.
    Shape low = shape;
    Shape high(shape.size(), -1);
    for (std::int64_t element = from; element < to; ++element) {
      std::int64_t rest = element;
      for (std::size_t d = shape.size(); d-- > 0;) {
        low[d] = std::min(low[d], rest % shape[d]);
        high[d] = std::max(high[d], rest % shape[d]);
        rest /= shape[d];
      }
    }
    std::int64_t count = 1;
    for (std::size_t d = 0; d < shape.size(); ++d) count *= high[d] - low[d] + 1;
    return count == to - from;
  };
  std::vector<std::size_t> best(static_cast<std::size_t>(end - begin) + 1, SIZE_MAX);
  best[0] = 0;
  for (std::int64_t to = begin + 1; to <= end; ++to) {
    auto& fewest = best[static_cast<std::size_t>(to - begin)];
    for (std::int64_t from = begin; from < to; ++from) {
      if (!is_box(from, to)) continue;
      fewest = std::min(fewest, best[static_cast<std::size_t>(from - begin)] + 1);
    }
  }
  return best.back();
}

}  // namespace

TEST_CASE("a box prints as its ranges") {
  CHECK(text(Box{{0, 64}, {128, 32}}) == "[0:128, 64:96]");
  CHECK(text(whole({})) == "[]");
}

TEST_CASE("intersection is symmetric and holds exactly the shared elements") {
  Draw draw;
  for (int round = 0; round < 2000; ++round) {
    const Shape shape = draw.shape();
    const Box a = draw.box(shape);
    const Box b = draw.box(shape);
    const auto of_a = indices(a, shape);
    const auto of_b = indices(b, shape);
    std::vector<std::int64_t> shared;
    std::set_intersection(of_a.begin(), of_a.end(), of_b.begin(), of_b.end(),
                          std::back_inserter(shared));
    const auto common = intersect(a, b);
    REQUIRE(common == intersect(b, a));
    REQUIRE(common.has_value() == !shared.empty());
    if (common) REQUIRE(indices(*common, shape) == shared);
  }
}

TEST_CASE("boxes that only touch, and empty boxes, do not meet") {
  CHECK_FALSE(intersect(Box{{0}, {4}}, Box{{4}, {4}}).has_value());
  CHECK_FALSE(intersect(Box{{0, 0}, {4, 0}}, Box{{0, 0}, {4, 4}}).has_value());
  CHECK(intersect(whole({}), whole({})) == whole({}));
}

TEST_CASE("copy runs equal naive copying and cannot be merged further") {
  Draw draw;
  for (int round = 0; round < 3000; ++round) {
    const Shape shape = draw.shape();
    const Box source = draw.box(shape);
    const Box destination = draw.box(shape);
    const auto from = indices(source, shape);  // what each element of the source holds
    const auto to = indices(destination, shape);
    const std::set<std::int64_t> in_source(from.begin(), from.end());
    std::vector<std::int64_t> expected;
    for (const auto index : to) expected.push_back(in_source.contains(index) ? index : -1);

    std::vector<std::int64_t> copied(to.size(), -1);
    const auto runs = copy_runs(source, destination);
    for (std::size_t at = 0; at < runs.size(); ++at) {
      const CopyRun& run = runs[at];
      REQUIRE(run.count > 0);
      for (std::int64_t element = 0; element < run.count; ++element) {
        auto& target = copied.at(static_cast<std::size_t>(run.destination + element));
        REQUIRE(target == -1);
        target = from.at(static_cast<std::size_t>(run.source + element));
      }
      if (at == 0) continue;
      const CopyRun& before = runs[at - 1];
      REQUIRE(before.destination < run.destination);
      REQUIRE_FALSE((before.source + before.count == run.source &&
                     before.destination + before.count == run.destination));
    }
    REQUIRE(copied == expected);
  }
}

TEST_CASE("copying a whole tensor is one run") {
  const auto runs = copy_runs(whole({3, 4, 5}), whole({3, 4, 5}));
  REQUIRE(runs.size() == 1);
  CHECK(runs[0].count == 60);
}

TEST_CASE("a column shard of a matrix copies row by row") {
  const auto runs = copy_runs(whole({3, 8}), Box{{0, 2}, {3, 4}});
  REQUIRE(runs.size() == 3);
  CHECK(runs[1].source == 10);
  CHECK(runs[1].destination == 4);
  CHECK(runs[1].count == 4);
}

TEST_CASE("a flat range is partitioned exactly, in order, by its boxes") {
  Draw draw;
  for (int round = 0; round < 3000; ++round) {
    const Shape shape = draw.shape();
    const Box outer = draw.box(shape);
    const auto elements = indices(outer, shape);
    const auto begin = draw.number(0, element_count(outer));
    const auto end = draw.number(begin, element_count(outer));
    std::vector<std::int64_t> covered;
    for (const Box& box : boxes_of_flat_range(outer, begin, end)) {
      for (const auto index : indices(box, shape)) covered.push_back(index);
    }
    REQUIRE(covered == std::vector<std::int64_t>(elements.begin() + begin, elements.begin() + end));
  }
}

TEST_CASE("a flat range uses as few boxes as any partition into contiguous boxes") {
  for (const Shape& shape : {Shape{7}, Shape{4, 5}, Shape{3, 1, 4}, Shape{2, 3, 4},
                             Shape{2, 2, 3, 2}, Shape{1, 4, 1, 3}}) {
    const std::int64_t count = element_count(shape);
    for (std::int64_t begin = 0; begin <= count; ++begin) {
      for (std::int64_t end = begin; end <= count; ++end) {
        REQUIRE(boxes_of_flat_range(whole(shape), begin, end).size() ==
                fewest_boxes(shape, begin, end));
      }
    }
  }
}

TEST_CASE("a flat range of an empty tensor has no boxes") {
  CHECK(boxes_of_flat_range(whole({3, 0, 2}), 0, 0).empty());
  CHECK(boxes_of_flat_range(whole({}), 0, 1) == std::vector<Box>{whole({})});
}
