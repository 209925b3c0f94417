// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/arena.hpp"

#include "trireme/base/error.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <utility>

using namespace trireme::device;

namespace {

/// A pattern of allocations as a step makes them.
void allocate_as_a_step_does(Arena& arena) {
  arena.allocate(DType::bf16, {3, 5});
  const auto mark = arena.mark();
  arena.allocate(DType::f32, {1000});
  {
    const ArenaScope scope(arena);
    arena.allocate(DType::bf16, {7, 11, 13});
    arena.allocate(DType::i32, {1});
  }
  arena.release(mark);
  arena.allocate(DType::f32, {2, 2, 2, 2});
}

}  // namespace

TEST_CASE("an arena hands out aligned, disjoint, zeroed memory") {
  auto arena = Arena::host(Purpose::workspace, 4096);
  const auto a = arena.allocate(DType::bf16, {3, 5});
  const auto b = arena.allocate(DType::f32, {4});
  CHECK(reinterpret_cast<std::uintptr_t>(a.raw()) % Arena::alignment == 0);
  CHECK(reinterpret_cast<std::uintptr_t>(b.raw()) % Arena::alignment == 0);
  CHECK(static_cast<std::byte*>(b.raw()) - static_cast<std::byte*>(a.raw()) >= 30);
  for (int i = 0; i < 15; ++i) CHECK(a.bf16()[i].bits == 0);
  CHECK(arena.used_bytes() == 128);
  CHECK_FALSE(arena.is_measuring());
  CHECK(arena.whole().raw() == a.raw());
  CHECK(arena.whole().byte_count() == 4096);
  CHECK_FALSE(Arena::host(Purpose::workspace, 0).whole());
  CHECK_FALSE(Arena::measuring(Purpose::workspace).whole());
}

TEST_CASE("release gives memory back to the mark and the peak remains") {
  auto arena = Arena::host(Purpose::activations, 1 << 20);
  arena.allocate(DType::f32, {16});
  const auto mark = arena.mark();
  const auto first = arena.allocate(DType::f32, {1000});
  arena.release(mark);
  CHECK(arena.used_bytes() == 64);
  CHECK(arena.peak_bytes() == 64 + 4032);
  CHECK(arena.allocate(DType::bf16, {8}).raw() == first.raw());
  {
    const ArenaScope scope(arena);
    arena.allocate(DType::f32, {100});
    CHECK(arena.used_bytes() > 128);
  }
  CHECK(arena.used_bytes() == 128);
}

TEST_CASE("a measuring arena counts what a real one uses") {
  auto measuring = Arena::measuring(Purpose::workspace);
  allocate_as_a_step_does(measuring);
  auto real = Arena::host(Purpose::workspace, measuring.peak_bytes());
  allocate_as_a_step_does(real);
  CHECK(real.peak_bytes() == measuring.peak_bytes());
  CHECK(real.used_bytes() == measuring.used_bytes());
  CHECK(real.peak_bytes() == real.capacity_bytes());
}

TEST_CASE("a measuring arena's tensors can be sliced without touching memory") {
  auto arena = Arena::measuring(Purpose::parameters);
  const auto tensor = arena.allocate(DType::bf16, {1 << 20, 1 << 20});
  const auto part = tensor.slice(0, 1000, 5).split(1, 64).slice(1, 3, 4);
  CHECK(part.text() == "bf16 [5, 4, 64]");
  CHECK(arena.used_bytes() == std::size_t{2} << 40);
  CHECK(arena.is_measuring());
}

TEST_CASE("more than an arena holds is a defect of the memory plan") {
  auto arena = Arena::host(Purpose::gradients, 128);
  arena.allocate(DType::f32, {16});
  try {
    arena.allocate(DType::f32, {17});
    FAIL("the allocation went through");
  } catch (const trireme::base::Error& error) {
    CHECK(error.code() == trireme::base::ExitCode::internal);
    CHECK_THAT(error.what(), Catch::Contains("gradients") && Catch::Contains("128"));
  }
  CHECK_NOTHROW(arena.allocate(DType::f32, {16}));
  CHECK_THROWS(arena.release(1000));
}

TEST_CASE("an arena moves with its memory") {
  auto first = Arena::host(Purpose::batch, 256);
  const auto tensor = first.allocate(DType::i32, {4});
  tensor.i32()[2] = 17;
  auto second = std::move(first);
  CHECK(second.used_bytes() == 64);
  CHECK(second.purpose() == Purpose::batch);
  CHECK(tensor.i32()[2] == 17);
  second = Arena::host(Purpose::workspace, 64);
  CHECK(second.used_bytes() == 0);
  CHECK(second.capacity_bytes() == 64);
}

TEST_CASE("an arena does not take back what a lease is on") {
  const bool is_measuring = GENERATE(false, true);
  auto arena =
      is_measuring ? Arena::measuring(Purpose::workspace) : Arena::host(Purpose::workspace, 4096);
  auto other = Arena::host(Purpose::activations, 4096);
  const auto begin = arena.mark();
  const auto first = arena.allocate(DType::f32, {16});
  const auto behind_first = arena.mark();
  const auto second = arena.allocate(DType::f32, {10});
  ArenaLease of_second(arena, second.slice(0, 2, 3));
  ArenaLease of_first(arena, first);
  const ArenaLease elsewhere(arena, other.allocate(DType::f32, {4}));
  CHECK_THROWS_AS(arena.release(behind_first), trireme::base::Error);
  ArenaLease moved(std::move(of_second));
  CHECK_THROWS_AS(arena.release(behind_first), trireme::base::Error);
  moved = {};
  arena.release(behind_first);
  CHECK_THROWS_AS(arena.release(begin), trireme::base::Error);
  of_first.end();
  of_first.end();
  arena.release(begin);
  CHECK(arena.used_bytes() == 0);
}
