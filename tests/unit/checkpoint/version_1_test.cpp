// SPDX-License-Identifier: Apache-2.0
// A checkpoint that the program wrote when its format had version 1: two ranks, a matrix in column
// halves, a moment cut as ZeRO cuts it, one bf16 matrix, one small vector of integers. Every
// element is its index modulo 97.
#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>

#include <cstdlib>

using namespace trireme;
using namespace trireme::tests;

namespace {

float value_of(const Held& held, std::int64_t index) {
  const auto dtype = held.data.dtype();
  if (dtype == device::DType::f32) return held.data.f32()[index];
  if (dtype == device::DType::bf16) return device::to_float(held.data.bf16()[index]);
  return static_cast<float>(held.data.i32()[index]);
}

}  // namespace

TEST_CASE("a checkpoint of version 1 is listed, verified and loaded at any box") {
  const ScratchFolder scratch;
  const std::string archive = TRIREME_SOURCE_DIR "/tests/golden/checkpoint/version-1.tar.gz";
  REQUIRE(std::system(
              ("tar -xzf '" + archive + "' -C '" + scratch.path().string() + "'").c_str()) == 0);
  const auto step = checkpoint::newest_verified(scratch.path(), checkpoint::VerifyLevel::full);
  REQUIRE(step.ok());
  CHECK(step->step == 42);
  CHECK(checkpoint::read_manifest(step->path)->version == 1);
  std::atomic<std::int64_t> right{0};
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const auto rows =
        world.rank() == 0 ? layout::Box{{0, 0}, {50, 200}} : layout::Box{{33, 5}, {100, 190}};
    const layout::Shape shape{180, 200};
    const layout::Shape half{170, 200};
    const Held w("layers.0.w", shape, device::DType::f32, rows);
    const Held m("adamw.first_moment/layers.0.w", shape, device::DType::f32, rows);
    const Held h("layers.0.h", half, device::DType::bf16, rows);
    const Held b("layers.0.b", {7}, device::DType::i32, layout::whole({7}));
    const auto report = checkpoint::load(
        step->path, std::vector{w.wanted(), m.wanted(), h.wanted(), b.wanted()}, world);
    if (report.tokens != 4242 || report.state != base::Json{{"cursor", 77}}) return;
    for (const auto* held : {&w, &m, &h, &b}) {
      held->each([&](std::int64_t global, std::int64_t local) {
        // Integers to 97 are exact in bf16, which has 8 bits of them.
        if (value_of(*held, local) == static_cast<float>(global % 97)) ++right;
      });
    }
  });
  CHECK(right == 3 * (50 * 200 + 100 * 190) + 2 * 7);
}
