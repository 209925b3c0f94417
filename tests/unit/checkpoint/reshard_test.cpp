// SPDX-License-Identifier: Apache-2.0
#include "unit/checkpoint/toy_model.hpp"

#include <catch2/catch.hpp>

#include <mutex>

using namespace trireme;
using namespace trireme::tests;

namespace {

std::filesystem::path save_toy(const std::filesystem::path& folder, const Arrangement& arrangement,
                               std::int64_t step) {
  std::filesystem::path saved;
  run_ranks(arrangement.ranks(), [&](comm::ProcessGroup& world) {
    ToyState state(arrangement, world.rank());
    state.fill();
    const auto report = checkpoint::save(
        {folder, step, 0, "test", {{"layout", arrangement.text()}}, state.save_items()}, world);
    if (world.rank() == 0) saved = report.folder;
  });
  return saved;
}

std::int64_t wrong_after_load(const std::filesystem::path& step, const Arrangement& arrangement) {
  std::atomic<std::int64_t> wrong{0};
  run_ranks(arrangement.ranks(), [&](comm::ProcessGroup& world) {
    ToyState state(arrangement, world.rank());
    state.spoil();
    checkpoint::load(step, state.load_items(), world);
    wrong += state.wrong_elements();
  });
  return wrong;
}

}  // namespace

TEST_CASE("each of six layouts loads bit for bit what each of six others saved") {
  const ScratchFolder scratch;
  std::int64_t step = 0;
  for (const auto& saved : arrangements()) {
    const auto folder = save_toy(scratch.path(), saved, ++step);
    CHECK(checkpoint::verify(folder, checkpoint::VerifyLevel::full).good());
    for (const auto& loaded : arrangements()) {
      INFO(saved.text() << " to " << loaded.text());
      CHECK(wrong_after_load(folder, loaded) == 0);
    }
  }
}

TEST_CASE("a state saved at A, loaded at B, saved there and loaded at A is the state") {
  const ScratchFolder scratch;
  const Arrangement a{1, 3, 2, 1};
  const Arrangement b{4, 1, 2, 0};
  const auto first = save_toy(scratch.path(), a, 1);
  std::filesystem::path second;
  run_ranks(b.ranks(), [&](comm::ProcessGroup& world) {
    ToyState state(b, world.rank());
    state.spoil();
    checkpoint::load(first, state.load_items(), world);
    const auto report =
        checkpoint::save({scratch.path(), 2, 0, "test", {}, state.save_items()}, world);
    if (world.rank() == 0) second = report.folder;
  });
  CHECK(wrong_after_load(second, a) == 0);
}

TEST_CASE("every element is written once and ranks write about the same number of bytes") {
  const ScratchFolder scratch;
  const Arrangement arrangement{1, 3, 2, 0};
  std::mutex mutex;
  std::vector<std::uint64_t> written;
  std::uint64_t payload = 0;
  run_ranks(arrangement.ranks(), [&](comm::ProcessGroup& world) {
    ToyState state(arrangement, world.rank());
    const auto report =
        checkpoint::save({scratch.path(), 1, 0, "test", {}, state.save_items()}, world);
    const std::lock_guard lock(mutex);
    written.push_back(report.written_bytes);
    payload = report.payload_bytes;
  });
  std::uint64_t sum = 0;
  for (const auto bytes : written) sum += bytes;
  CHECK(sum == payload);
  const auto mean = payload / written.size();
  CHECK(*std::max_element(written.begin(), written.end()) < mean + (1U << 20));
}

TEST_CASE("a tensor saved in one floating type loads into the other, rounded to nearest even") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    std::vector<float> values{1.0F, 1.00390625F, 1.01171875F, -2.5F, 3.3895314e38F, 0.0F};
    const layout::Shape shape{6};
    const device::Tensor data(values.data(), device::DType::f32, {6});
    const auto saved = checkpoint::save(
        {scratch.path(), 1, 0, "", {}, {{"w", shape, layout::whole(shape), data}}}, world);
    std::vector<device::Bf16> rounded(6);
    const device::Tensor to(rounded.data(), device::DType::bf16, {6});
    checkpoint::load(saved.folder,
                     std::vector<checkpoint::LoadItem>{{"w", shape, layout::whole(shape), to}},
                     world);
    for (std::size_t index = 0; index < 6; ++index) {
      CHECK(rounded[index].bits == device::to_bf16(values[index]).bits);
    }
    const auto again = checkpoint::save(
        {scratch.path(), 2, 0, "", {}, {{"w", shape, layout::whole(shape), to}}}, world);
    std::vector<float> widened(6);
    checkpoint::load(
        again.folder,
        std::vector<checkpoint::LoadItem>{
            {"w", shape, layout::whole(shape), {widened.data(), device::DType::f32, {6}}}},
        world);
    for (std::size_t index = 0; index < 6; ++index) {
      CHECK(widened[index] == device::to_float(rounded[index]));
    }
  });
}

TEST_CASE("strided tensors are saved and loaded in place") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    // Columns [7, 307) of a wider matrix, its neighbours untouched.
    std::vector<float> wide(std::size_t{900} * 400);
    const device::Tensor all(wide.data(), device::DType::f32, {900, 400});
    const auto part = all.slice(1, 7, 300);
    const layout::Shape shape{900, 300};
    for (std::size_t row = 0; row < 900; ++row) {
      for (std::size_t column = 0; column < 400; ++column) {
        wide[row * 400 + column] = static_cast<float>(row * 1000 + column);
      }
    }
    const auto before = wide;
    const auto saved = checkpoint::save(
        {scratch.path(), 1, 0, "", {}, {{"w", shape, layout::whole(shape), part}}}, world);
    std::fill(wide.begin(), wide.end(), -1.0F);
    checkpoint::load(saved.folder,
                     std::vector<checkpoint::LoadItem>{{"w", shape, layout::whole(shape), part}},
                     world);
    std::size_t wrong = 0;
    for (std::size_t index = 0; index < wide.size(); ++index) {
      const auto column = index % 400;
      const auto expected = column >= 7 && column < 307 ? before[index] : -1.0F;
      if (wide[index] != expected) ++wrong;
    }
    CHECK(wrong == 0);
  });
}
