// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/checkpoint/box_runs.hpp"
#include "trireme/checkpoint/items.hpp"

#include "unit/checkpoint/toy_model.hpp"

#include <catch2/catch.hpp>

#include <numeric>

using namespace trireme;
using namespace trireme::tests;
using checkpoint::HeldBox;

namespace {

std::vector<std::int64_t> loads(const std::vector<std::vector<HeldBox>>& held) {
  std::vector<std::int64_t> bytes(held.size(), 0);
  const auto assignments = checkpoint::assign_writers(held);
  for (std::size_t rank = 0; rank < held.size(); ++rank) {
    for (const auto& [item, box] : assignments[rank]) {
      CHECK(layout::intersect(box, held[rank][item].box) == box);
      bytes[rank] += layout::element_count(box) *
                     static_cast<std::int64_t>(device::size_of(held[rank][item].dtype));
    }
  }
  return bytes;
}

HeldBox whole(const std::string& name, layout::Shape shape) {
  return {name, shape, device::DType::f32, layout::whole(shape)};
}

}  // namespace

TEST_CASE("one large tensor held by all is written by all in equal parts") {
  const std::vector<std::vector<HeldBox>> held(3, {whole("w", {30'000, 1000})});
  for (const auto bytes : loads(held)) CHECK(std::abs(bytes - 40'000'000) <= 40'000'000 / 16);
}

TEST_CASE("replicas fill up the ranks that have little of their own") {
  // Rank 0 alone holds 80 MB; of the 120 MB that both hold it writes 20.
  const std::vector<std::vector<HeldBox>> held{
      {whole("own", {20'000, 1000}), whole("shared", {30'000, 1000})},
      {whole("shared", {30'000, 1000})}};
  const auto bytes = loads(held);
  CHECK(bytes[0] + bytes[1] == 200'000'000);
  CHECK(std::abs(bytes[0] - bytes[1]) <= 100'000'000 / 16);
}

TEST_CASE("every arrangement of the toy model writes each element once, ranks alike") {
  for (const auto& arrangement : arrangements()) {
    std::vector<std::vector<HeldBox>> held;
    for (int rank = 0; rank < arrangement.ranks(); ++rank) {
      auto& mine = held.emplace_back();
      for (const auto& item : ToyState(arrangement, rank).save_items()) {
        mine.push_back({item.name, item.shape, item.data.dtype(), item.box});
      }
    }
    const auto bytes = loads(held);
    const auto sum = std::accumulate(bytes.begin(), bytes.end(), std::int64_t{0});
    std::int64_t expected = 0;
    for (const auto& [spec, layer] : toy_tensors()) {
      expected += layout::element_count(spec.shape) * (2 + 4 + 4);
    }
    CHECK(sum == expected);
    // Stages hold different layers, and without data parallelism there is nothing to choose.
    if (arrangement.pipeline > 1 || arrangement.data == 1) continue;
    INFO(arrangement.text());
    const auto mean = sum / static_cast<std::int64_t>(bytes.size());
    CHECK(*std::max_element(bytes.begin(), bytes.end()) < mean + (std::int64_t{1} << 20));
  }
}

TEST_CASE("ranks that contradict each other are refused with tensor and ranks") {
  const auto text = [](const std::vector<std::vector<HeldBox>>& held) -> std::string {
    try {
      checkpoint::assign_writers(held);
    } catch (const base::Error& error) {
      return error.what();
    }
    return "accepted";
  };
  CHECK_THAT(text({{whole("w", {4, 4})}, {whole("w", {4, 5})}}),
             Catch::Contains("'w'") && Catch::Contains("on rank 1"));
  CHECK_THAT(text({{{"w", {4}, device::DType::f32, {{0}, {3}}}},
                   {{"w", {4}, device::DType::f32, {{2}, {2}}}}}),
             Catch::Contains("overlap"));
  CHECK_THAT(text({{{"w", {4}, device::DType::f32, {{0}, {3}}}}}), Catch::Contains("3 of 4"));
  CHECK_THAT(text({{whole("a", {4}), whole("a.b", {4}), whole("a/b", {4})}}),
             Catch::Contains("begins with"));
  CHECK_THAT(text({{whole("w/at_0", {4})}}), Catch::Contains("not allowed"));
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
