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
    const auto report =
        checkpoint::save(state.request(folder, step, 0, {{"layout", arrangement.text()}}), world);
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
    const auto report = checkpoint::save(state.request(scratch.path(), 2), world);
    if (world.rank() == 0) second = report.folder;
  });
  CHECK(wrong_after_load(second, a) == 0);
}

TEST_CASE("data-parallel ranks write the same number of bytes, all together each element once") {
  const ScratchFolder scratch;
  const int zero_level = GENERATE(0, 1);
  const Arrangement arrangement{1, 3, 1, zero_level};
  std::mutex mutex;
  std::vector<std::uint64_t> written;
  std::uint64_t payload = 0;
  run_ranks(arrangement.ranks(), [&](comm::ProcessGroup& world) {
    ToyState state(arrangement, world.rank());
    const auto report = checkpoint::save(state.request(scratch.path(), 1), world);
    const std::lock_guard lock(mutex);
    written.push_back(report.written_bytes);
    payload = report.payload_bytes;
  });
  CHECK(written[0] == written[1]);
  CHECK(written[0] == written[2]);
  // Padding: less than one element a rank and bucket.
  CHECK(3 * written[0] >= payload);
  CHECK(3 * written[0] < payload + 10'000);
}

TEST_CASE("a tensor saved in one floating type loads into the other, rounded to nearest even") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    std::vector<float> values{1.0F, 1.00390625F, 1.01171875F, -2.5F, 3.3895314e38F, 0.0F};
    const layout::Shape shape{6};
    const device::Tensor data(values.data(), device::DType::f32, {6});
    const auto contents = [&](device::DType dtype) {
      return contents_of({{"w", shape, dtype, layout::whole(shape), 0}});
    };
    const auto saved = checkpoint::save(
        {scratch.path(), 1, 0, "", {}, contents(device::DType::f32), {data}}, world);
    std::vector<device::Bf16> rounded(6);
    const device::Tensor to(rounded.data(), device::DType::bf16, {6});
    checkpoint::load(saved.folder,
                     std::vector<checkpoint::LoadItem>{{"w", shape, layout::whole(shape), to}},
                     world);
    for (std::size_t index = 0; index < 6; ++index) {
      CHECK(rounded[index].bits == device::to_bf16(values[index]).bits);
    }
    const auto again = checkpoint::save(
        {scratch.path(), 2, 0, "", {}, contents(device::DType::bf16), {to}}, world);
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

TEST_CASE("strided tensors are loaded in place") {
  const ScratchFolder scratch;
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const layout::Shape shape{900, 300};
    Held saved("w", shape, device::DType::f32, layout::whole(shape));
    for (std::size_t at = 0; at < 900 * 300; ++at) saved.data.f32()[at] = static_cast<float>(at);
    const auto report = checkpoint::save(request_of(scratch.path(), 1, {&saved}), world);
    // Columns [7, 307) of a wider matrix, its neighbours untouched.
    std::vector<float> wide(std::size_t{900} * 400, -1.0F);
    const device::Tensor all(wide.data(), device::DType::f32, {900, 400});
    checkpoint::load(
        report.folder,
        std::vector<checkpoint::LoadItem>{{"w", shape, layout::whole(shape), all.slice(1, 7, 300)}},
        world);
    std::size_t wrong = 0;
    for (std::size_t index = 0; index < wide.size(); ++index) {
      const auto row = index / 400;
      const auto column = index % 400;
      const bool inside = column >= 7 && column < 307;
      const auto expected = inside ? saved.data.f32()[row * 300 + column - 7] : -1.0F;
      if (wide[index] != expected) ++wrong;
    }
    CHECK(wrong == 0);
  });
}
