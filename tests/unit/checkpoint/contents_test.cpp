// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/contents.hpp"

#include "trireme/base/error.hpp"
#include "trireme/checkpoint/box_runs.hpp"

#include "unit/checkpoint/toy_model.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <compare>

using namespace trireme;
using namespace trireme::tests;

TEST_CASE("the slices of all parts are every byte of payload once, in every arrangement") {
  for (const auto& arrangement : arrangements()) {
    INFO(arrangement.text());
    const auto contents = toy_contents(arrangement);
    struct Range {
      std::size_t file;
      std::uint64_t begin;
      std::uint64_t end;
      auto operator<=>(const Range&) const = default;
    };
    std::vector<Range> ranges;
    for (const auto& tensor : contents.tensors) {
      for (const auto& part : tensor.parts) {
        const auto count = layout::element_count(part.box);
        const auto positions = contents.positions_of(part, 0, count);
        std::int64_t next = 0;
        for (auto at = positions.begin; at < positions.end; ++at) {
          const auto slice = contents.slice_at(part, at);
          REQUIRE(slice.begin == next);
          REQUIRE(slice.begin < slice.end);
          next = slice.end;
          const auto bytes =
              static_cast<std::uint64_t>(slice.end - slice.begin) * device::size_of(tensor.dtype);
          ranges.push_back({slice.file, slice.byte, slice.byte + bytes});
        }
        REQUIRE(next == count);
      }
    }
    std::sort(ranges.begin(), ranges.end());
    std::uint64_t bytes = 0;
    for (std::size_t index = 0; index < ranges.size(); ++index) {
      const auto& [file, begin, end] = ranges[index];
      bytes += end - begin;
      if (index == 0 || ranges[index - 1].file != file) continue;
      CHECK(ranges[index - 1].end <= begin);
    }
    CHECK(bytes == contents.payload_bytes());
    std::uint64_t expected = 0;
    for (const auto& [spec, layer] : toy_tensors()) {
      expected += static_cast<std::uint64_t>(layout::element_count(spec.shape)) * (2 + 4 + 4);
    }
    CHECK(bytes == expected);
  }
}

TEST_CASE("a few elements of a part are looked for in the files that may have them") {
  const auto contents = [] {
    checkpoint::ContentsBuilder builder;
    const auto bucket = builder.add_bucket(device::DType::f32, {3, 2, 4}, 10);
    builder.add_part("a", {5}, layout::whole({5}), bucket, 0);
    builder.add_part("b", {25}, layout::whole({25}), bucket, 7);
    return builder.take();
  }();
  const auto& part = contents.find("b")->parts[0];
  const auto positions = [&](std::int64_t first, std::int64_t last) {
    const auto [begin, end] = contents.positions_of(part, first, last);
    return std::pair(begin, end);
  };
  CHECK(positions(0, 25) == std::pair<std::size_t, std::size_t>(0, 4));
  CHECK(positions(0, 3) == std::pair<std::size_t, std::size_t>(0, 1));
  CHECK(positions(3, 4) == std::pair<std::size_t, std::size_t>(1, 2));
  CHECK(positions(12, 14) == std::pair<std::size_t, std::size_t>(1, 3));
  const auto slice = contents.slice_at(part, 1);
  CHECK(slice.file == 5);
  CHECK(slice.begin == 3);
  CHECK(slice.end == 13);
  CHECK(slice.byte == contents.buckets[0].byte);
  CHECK(contents.slice_at(part, 0).byte == contents.buckets[0].byte + 7 * 4);
}

TEST_CASE("each type of a file is one dataset at a multiple of 1 MiB, buckets behind each other") {
  checkpoint::ContentsBuilder builder;
  constexpr std::int64_t large = (3 << 20) / 4 + 1;
  const auto add = [&](const char* name, device::DType dtype, std::int64_t elements) {
    const auto bucket = builder.add_bucket(dtype, {0, 1, 1}, elements);
    builder.add_part(name, {elements}, layout::whole({elements}), bucket, 0);
  };
  add("half", device::DType::bf16, 5);
  add("large", device::DType::f32, large);
  add("small", device::DType::f32, 7);
  add("number", device::DType::i32, 1);
  const auto contents = builder.take();
  constexpr std::uint64_t mib = 1 << 20;
  CHECK(contents.buckets[1].byte == mib);
  CHECK(contents.buckets[2].byte == mib + large * 4);
  CHECK(contents.buckets[0].byte == 5 * mib);
  CHECK(contents.buckets[3].byte == 6 * mib);
  const auto datasets = checkpoint::shard_datasets(contents.buckets);
  REQUIRE(datasets.size() == 1);
  REQUIRE(datasets[0].size() == 3);
  CHECK(datasets[0][0].byte == mib);
  CHECK(datasets[0][0].elements == large + 7);
  CHECK(datasets[0][1].byte == 5 * mib);
  CHECK(datasets[0][2].byte == 6 * mib);
}

TEST_CASE("contents that contradict themselves are refused by the tensor's name") {
  const auto f32 = device::DType::f32;
  const auto text = [](const std::vector<OwnedBox>& boxes) -> std::string {
    try {
      contents_of(boxes);
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::internal);
      return error.what();
    }
    return "accepted";
  };
  const auto whole = [&](const std::string& name, layout::Shape shape) {
    return OwnedBox{name, shape, f32, layout::whole(shape), 0};
  };
  CHECK_THAT(text({whole("w", {4, 4}), whole("w", {4, 5})}),
             Catch::Contains("'w'") && Catch::Contains("[4, 4]") && Catch::Contains("[4, 5]"));
  CHECK_THAT(text({whole("w", {4}), {"w", {4}, device::DType::bf16, layout::whole({4}), 1}}),
             Catch::Contains("'w'") && Catch::Contains("bf16"));
  CHECK_THAT(text({{"w", {4}, f32, {{0}, {3}}, 0}, {"w", {4}, f32, {{2}, {2}}, 1}}),
             Catch::Contains("overlap"));
  CHECK_THAT(text({{"w", {4}, f32, {{0}, {3}}, 0}}), Catch::Contains("3 of 4"));
  CHECK_THAT(text({whole("a", {4}), whole("a.b", {4}), whole("a/b", {4})}),
             Catch::Contains("begins with"));
  CHECK_THAT(text({whole("w/../v", {4})}), Catch::Contains("not allowed"));
}

TEST_CASE("runs of a box join what is contiguous on both sides and nothing else") {
  std::vector<float> memory(1000);
  const device::Tensor tensor(memory.data(), device::DType::f32, {6, 10});
  const layout::Box held{{10, 20}, {6, 10}};
  const auto count = [&](const layout::Box& stored, const layout::Box& part) {
    return checkpoint::BoxRuns(stored, held, tensor, part).count();
  };
  CHECK(count(held, held) == 1);
  CHECK(count(held, {{11, 20}, {3, 10}}) == 1);
  CHECK(count(held, {{10, 21}, {6, 9}}) == 6);
  CHECK(count({{0, 20}, {40, 10}}, held) == 1);
  CHECK(count({{0, 0}, {40, 30}}, held) == 6);
  CHECK(count({{0, 0}, {40, 30}}, {{12, 20}, {1, 10}}) == 1);
  // Against the element-by-element definition, in three dimensions and with strides.
  const auto cube = device::Tensor(memory.data(), device::DType::f32, {5, 8, 12}).slice(1, 2, 5);
  const layout::Box cube_box{{1, 1, 2}, {5, 5, 12}};
  const layout::Box stored{{0, 2, 0}, {9, 3, 20}};
  const auto part = *layout::intersect(cube_box, stored);
  const checkpoint::BoxRuns runs(stored, cube_box, cube, part);
  std::vector<std::pair<std::int64_t, std::int64_t>> pairs;
  for (std::int64_t index = 0; index < runs.count(); ++index) {
    CHECK(runs.first_ending_after(runs.at(index).stored) == index);
    for (std::int64_t at = 0; at < runs.length(); ++at) {
      pairs.emplace_back(runs.at(index).stored + at, runs.at(index).held + at);
    }
  }
  std::size_t next = 0;
  for (auto x = part.offset[0]; x < part.offset[0] + part.length[0]; ++x) {
    for (auto y = part.offset[1]; y < part.offset[1] + part.length[1]; ++y) {
      for (auto z = part.offset[2]; z < part.offset[2] + part.length[2]; ++z) {
        REQUIRE(next < pairs.size());
        CHECK(pairs[next++] == std::pair<std::int64_t, std::int64_t>(
                                   (x * 3 + y - 2) * 20 + z, (x - 1) * 96 + (y - 1) * 12 + z - 2));
      }
    }
  }
  CHECK(next == pairs.size());
}
