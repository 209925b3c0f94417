// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/compare.hpp"

#include "trireme/base/file.hpp"

#include "unit/checkpoint/one_value.hpp"
#include "unit/checkpoint/small_steps.hpp"
#include "unit/checkpoint/toy_model.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <limits>

using namespace trireme;
using namespace trireme::tests;
using checkpoint::VerifyLevel;
using Kind = checkpoint::TensorDifference::Kind;

namespace {

std::filesystem::path save_toy(const std::filesystem::path& folder,
                               const Arrangement& arrangement) {
  std::filesystem::path saved;
  run_ranks(arrangement.ranks(), [&](comm::ProcessGroup& world) {
    ToyState state(arrangement, world.rank());
    state.fill();
    const auto report = checkpoint::save(state.request(folder, 1), world);
    if (world.rank() == 0) saved = report.folder;
  });
  return saved;
}

void write_manifest(const std::filesystem::path& folder, const checkpoint::Manifest& manifest) {
  std::ofstream(folder / "manifest.json", std::ios::binary) << checkpoint::manifest_text(manifest);
}

}  // namespace

TEST_CASE("steps of different layouts are the same when their tensors are") {
  const ScratchFolder scratch;
  const auto first = save_toy(scratch.path() / "a", {1, 1, 1, 0});
  const auto second = save_toy(scratch.path() / "b", {2, 1, 2, 0});
  const auto comparison = checkpoint::compare(first, second);
  CHECK(comparison.tensors.empty());
  CHECK(comparison.common == 3 * toy_tensors().size());
  CHECK(comparison.facts.empty());
}

TEST_CASE("a difference is told by tensor, count, magnitude and norm") {
  const ScratchFolder scratch;
  const auto first =
      save_small(scratch.path() / "a", 1, 2.0F, {{"seed", 1}, {"config", "x = 1\n"}});
  const auto second =
      save_small(scratch.path() / "b", 1, 2.5F, {{"seed", 2}, {"config", "x = 2\n"}});
  const auto comparison = checkpoint::compare(first.path, second.path);
  REQUIRE(comparison.tensors.size() == 1);
  const auto& tensor = comparison.tensors[0];
  CHECK(tensor.name == "w");
  CHECK(tensor.kind == Kind::values);
  CHECK(tensor.differing == 10);
  CHECK(tensor.elements == 10);
  CHECK(tensor.largest == 0.5);
  CHECK(tensor.relative == Approx(0.25));
  REQUIRE(comparison.facts.size() == 1);
  CHECK(comparison.facts[0] == base::Json({"seed", 1, 2}));
  CHECK(comparison.only_first_settings == std::vector<std::string>{"x = 1"});
  CHECK(comparison.only_second_settings == std::vector<std::string>{"x = 2"});
}

TEST_CASE("a NaN stays the largest difference, and the same NaN is none") {
  const ScratchFolder scratch;
  const auto nan = std::numeric_limits<float>::quiet_NaN();
  const auto first = save_small(scratch.path() / "a", 1, nan);
  const auto second = save_small(scratch.path() / "b", 1, nan);
  const auto third = save_small(scratch.path() / "c", 1, 1.0F);
  CHECK(checkpoint::compare(first.path, second.path).tensors.empty());
  const auto comparison = checkpoint::compare(first.path, third.path);
  REQUIRE(comparison.tensors.size() == 1);
  CHECK(std::isnan(comparison.tensors[0].largest));
}

TEST_CASE("tensors of one step alone, or of another shape or type, are named") {
  const ScratchFolder scratch;
  const auto save = [&](const char* folder, const std::vector<const Held*>& held) {
    std::filesystem::path saved;
    run_ranks(1, [&](comm::ProcessGroup& world) {
      saved = checkpoint::save(request_of(scratch.path() / folder, 1, held), world).folder;
    });
    return saved;
  };
  const auto make = [](const char* name, layout::Shape shape, device::DType dtype) {
    return Held(name, shape, dtype, layout::whole(shape));
  };
  const Held a1 = make("a", {4, 6}, device::DType::f32);
  const Held a2 = make("a", {6, 4}, device::DType::f32);
  const Held b1 = make("b", {8}, device::DType::f32);
  const Held b2 = make("b", {8}, device::DType::bf16);
  const Held c = make("c", {8}, device::DType::f32);
  const Held d = make("d", {8}, device::DType::f32);
  const auto comparison =
      checkpoint::compare(save("first", {&a1, &b1, &c}), save("second", {&a2, &b2, &d}));
  std::vector<Kind> kinds;
  for (const auto& tensor : comparison.tensors) kinds.push_back(tensor.kind);
  CHECK(kinds == std::vector<Kind>{Kind::shape, Kind::dtype, Kind::only_first, Kind::only_second});
  CHECK(comparison.common == 2);
}

TEST_CASE("the deep look finds values that are not finite, which no checksum tells") {
  const ScratchFolder scratch;
  const auto good = save_small(scratch.path() / "good", 1, 1.0F);
  CHECK(checkpoint::verify(good.path, VerifyLevel::deep).good());
  const auto bad = save_small(scratch.path() / "bad", 1, std::numeric_limits<float>::infinity());
  CHECK(checkpoint::verify(bad.path, VerifyLevel::full).good());
  const auto report = checkpoint::verify(bad.path, VerifyLevel::deep);
  REQUIRE(report.damages.size() == 1);
  CHECK(report.damages[0].tensors == std::vector<std::string>{"w"});
  CHECK_THAT(report.damages[0].text, Catch::Contains("10 of the 10 values"));
}

TEST_CASE("the deep look finds a master.h5 that shows other values than a load gives") {
  const ScratchFolder scratch;
  const auto save = [&](const char* folder, std::int64_t first_rows) {
    std::filesystem::path saved;
    run_ranks(1, [&](comm::ProcessGroup& world) {
      const layout::Shape shape{10, 4};
      const Held top("w", shape, device::DType::f32, {{0, 0}, {first_rows, 4}});
      const Held rest("w", shape, device::DType::f32, {{first_rows, 0}, {10 - first_rows, 4}});
      std::fill_n(top.data.f32(), first_rows * 4, 1.0F);
      std::fill_n(rest.data.f32(), (10 - first_rows) * 4, 2.0F);
      // The buckets' order decides what lies where.
      const bool swaps = first_rows == 5;
      const auto request = request_of(
          scratch.path() / folder, 1,
          swaps ? std::vector<const Held*>{&rest, &top} : std::vector<const Held*>{&top, &rest});
      saved = checkpoint::save(request, world).folder;
    });
    return saved;
  };
  const auto step = save("a", 4);
  const auto other = save("b", 5);
  CHECK(checkpoint::verify(step, VerifyLevel::deep).good());
  auto manifest = *checkpoint::read_manifest(step);
  const auto foreign = *checkpoint::read_manifest(other);
  REQUIRE(manifest.files.back().name == "master.h5");
  manifest.files.back() = foreign.files.back();
  std::filesystem::copy_file(other / "master.h5", step / "master.h5",
                             std::filesystem::copy_options::overwrite_existing);
  write_manifest(step, manifest);
  CHECK(checkpoint::verify(step, VerifyLevel::full).good());
  const auto report = checkpoint::verify(step, VerifyLevel::deep);
  REQUIRE(report.damages.size() == 1);
  CHECK(report.damages[0].file == "master.h5");
  CHECK(report.damages[0].tensors == std::vector<std::string>{"w"});
}
