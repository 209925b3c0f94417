// SPDX-License-Identifier: Apache-2.0
// The simulated GPU must catch what a GPU would not forgive.
#include "trireme/device/device.hpp"
#include "trireme/device/kernels.hpp"

#include "support/end_of_child.hpp"
#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>
#include <signal.h>

#include <array>
#include <cmath>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

using namespace trireme;
using namespace trireme::testing;
using Catch::Matchers::Contains;
using device::DType;
using device::Purpose;
using device::Tensor;

namespace {

constexpr Haste lazy{Haste::Kind::lazy};
constexpr Haste eager{Haste::Kind::eager};

std::vector<float> counting(std::int64_t count) {
  std::vector<float> values(static_cast<std::size_t>(count));
  std::iota(values.begin(), values.end(), 1.0F);
  return values;
}

}  // namespace

TEST_CASE("a host that reads a device's memory dies at once, and hears what it touched") {
  const auto end = end_of([] {
    SimulatedDevice device(eager);
    auto arena = device.arena(Purpose::gradients, 4096);
    arena.allocate(DType::f32, {16});
    const auto tensor = arena.allocate(DType::f32, {16});
    volatile float seen = tensor.f32()[3];
    static_cast<void>(seen);
  });
  CHECK(end.signal == SIGSEGV);
  CHECK_THAT(end.words, Contains("touched byte 76 of 4096 of 'gradients'"));
}

TEST_CASE("a host that writes a device's memory dies at once") {
  const auto end = end_of([] {
    SimulatedDevice device(lazy);
    auto arena = device.arena(Purpose::batch, 64);
    arena.allocate(DType::i32, {1}).i32()[0] = 1;
  });
  CHECK(end.signal == SIGSEGV);
  CHECK_THAT(end.words, Contains("'batch', which is out of its reach"));
}

TEST_CASE("memory of a device that is gone is neither the host's nor a kernel's") {
  const auto end = end_of([] {
    SimulatedDevice device(eager);
    const auto gone = device.arena(Purpose::batch, 64).allocate(DType::i32, {1});
    gone.i32()[0] = 1;
  });
  CHECK(end.signal == SIGSEGV);
  CHECK_THAT(end.words, Contains("touched byte 0 of 64 of 'batch', which was freed"));
  SimulatedKernels kernels(device::make_reference_kernels(), lazy);
  const auto gone = kernels.device().arena(Purpose::batch, 64).allocate(DType::f32, {1});
  CHECK_THROWS_WITH(kernels.issue(device::Fill{gone, 0.0F}), Contains("'batch', which was freed"));
}

TEST_CASE("what nobody waited for is not there") {
  SimulatedKernels kernels(device::make_reference_kernels(), lazy);
  auto arena = kernels.device().arena(Purpose::workspace, 256);
  const auto x = arena.allocate(DType::f32, {8});
  kernels.issue(device::Fill{x, 2.0F});
  std::vector<float> seen(8, -1.0F);
  kernels.device().copy_out(x, seen.data());
  auto copied = kernels.device().record();
  CHECK(!copied.passed());
  CHECK(seen == std::vector<float>(8, -1.0F));
  copied.wait();
  CHECK(seen == std::vector<float>(8, 2.0F));
}

TEST_CASE("host memory that is given away too early spoils what is copied from it") {
  SimulatedKernels kernels(device::make_reference_kernels(), lazy);
  auto arena = kernels.device().arena(Purpose::batch, 256);
  const auto x = arena.allocate(DType::f32, {4});
  auto values = counting(4);
  kernels.device().copy_in(values.data(), x);
  values[2] = 100.0F;
  CHECK(kernels.sum(x) == 1.0 + 2.0 + 100.0 + 4.0);
}

TEST_CASE("work that is done at once leaves out what the host gives after its issue") {
  SimulatedKernels kernels(device::make_reference_kernels(), eager);
  auto arena = kernels.device().arena(Purpose::batch, 256);
  const auto x = arena.allocate(DType::f32, {4});
  auto values = counting(4);
  kernels.device().copy_in(values.data(), x);
  values[2] = 100.0F;
  CHECK(kernels.sum(x) == 10.0);
}

TEST_CASE("fresh memory of a simulated GPU is poisoned") {
  SimulatedKernels kernels(device::make_reference_kernels(), lazy);
  auto arena = kernels.device().arena(Purpose::activations, 256);
  CHECK(std::isnan(kernels.sum(arena.allocate(DType::f32, {3}))));
}

TEST_CASE("kernels of a simulated GPU take its memory alone, and all of it") {
  SimulatedKernels kernels(device::make_reference_kernels(), lazy);
  auto arena = kernels.device().arena(Purpose::activations, 64);
  const auto x = arena.allocate(DType::f32, {16});
  auto values = counting(16);
  const Tensor of_host(values.data(), DType::f32, {16});
  CHECK_THROWS_WITH(kernels.issue(device::Copy{of_host, x}),
                    Contains("copy: from (f32 [16]) lies in host memory"));
  const Tensor too_long(x.raw(), DType::f32, {17});
  CHECK_THROWS_WITH(kernels.issue(device::Fill{too_long, 0.0F}),
                    Contains("leaves its memory at byte 0 of 64 of 'activations'"));
  CHECK_THROWS_AS(kernels.device().copy_in(x.raw(), x), DeviceFault);
}

TEST_CASE("kernels of a simulated GPU compute what their own backend does, in the stream's order") {
  const auto kind = GENERATE(Haste::Kind::lazy, Haste::Kind::eager, Haste::Kind::mixed);
  SimulatedKernels kernels(device::make_reference_kernels(), {kind, 5});
  auto arena = kernels.device().arena(Purpose::activations, 4096);
  const auto x = arena.allocate(DType::f32, {4, 6});
  const auto w = arena.allocate(DType::f32, {5, 6});
  const auto y = arena.allocate(DType::f32, {4, 5});
  auto x_values = counting(24);
  auto w_values = counting(30);
  device::HostMirror mirror(kernels.device());
  std::copy(x_values.begin(), x_values.end(), mirror.of(x).f32());
  std::copy(w_values.begin(), w_values.end(), mirror.of(w).f32());
  mirror.store();
  kernels.issue(device::LinearForward{x, w, {}, y});
  kernels.issue(device::Add{y, y, y});
  device::HostMirror result(kernels.device());
  const auto here = result.of(y);
  result.fetch();
  std::vector<float> expected(20);
  const Tensor y_expected(expected.data(), DType::f32, {4, 5});
  const auto reference = device::make_reference_kernels();
  reference->issue(device::LinearForward{Tensor(x_values.data(), DType::f32, {4, 6}),
                                         Tensor(w_values.data(), DType::f32, {5, 6}),
                                         {},
                                         y_expected});
  reference->issue(device::Add{y_expected, y_expected, y_expected});
  CHECK(std::vector<float>(here.f32(), here.f32() + 20) == expected);
}

TEST_CASE("a mirror of host memory is the memory itself") {
  auto arena = device::host_device().arena(Purpose::workspace, 256);
  const auto x = arena.allocate(DType::f32, {3});
  device::HostMirror mirror(device::host_device());
  CHECK(mirror.of(x).raw() == x.raw());
  CHECK(!mirror.of(Tensor{}));
  mirror.store();
  mirror.fetch();
}

namespace {

simulated_gpu::Stream& stream_of(device::SideStream& side) {
  return *static_cast<simulated_gpu::Stream*>(side.handle());
}

/// Lets something happen at its third look.
class Driver final : public device::Watcher {
 public:
  explicit Driver(std::function<void()> deed) : deed_(std::move(deed)) {}
  void look() override {
    if (++looks == 3) deed_();
  }
  void rest() override { ++rests; }
  int looks = 0;
  int rests = 0;

 private:
  std::function<void()> deed_;
};

}  // namespace

TEST_CASE("streams wait for each other where events say so") {
  const auto kind = GENERATE(Haste::Kind::lazy, Haste::Kind::eager, Haste::Kind::mixed);
  const auto seed = static_cast<std::uint64_t>(GENERATE(1, 2, 3, 4, 5, 6, 7, 8));
  SimulatedDevice device({kind, seed});
  const auto side = device.side_stream(device::Priority::awaited);
  std::vector<int> order;
  const auto note = [&order](int number) { return [&order, number] { order.push_back(number); }; };
  for (int round = 0; round < 9; round += 3) {
    device.issue(note(round));
    side->follow(device.record());
    stream_of(*side).issue(note(round + 1));
    device.follow(side->record());
    device.issue(note(round + 2));
  }
  device.synchronize();
  CHECK(order == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8});
}

TEST_CASE("without an event between them the work of two streams has no order") {
  bool seen_before = false;
  bool seen_after = false;
  for (std::uint64_t seed = 0; seed < 64; ++seed) {
    SimulatedDevice device({Haste::Kind::mixed, seed});
    const auto side = device.side_stream(device::Priority::awaited);
    int value = 0;
    int read = -1;
    device.issue([&] { value = 1; });
    stream_of(*side).issue([&] { read = value; });
    auto end = side->record();
    end.wait();
    (read == 0 ? seen_before : seen_after) = true;
    device.synchronize();
  }
  CHECK(seen_before);
  CHECK(seen_after);
}

TEST_CASE("a wait for a device lets watchers go on, and is refused where nobody drives") {
  SimulatedDevice device(lazy);
  const auto side = device.side_stream(device::Priority::overlapped);
  bool done = false;
  stream_of(*side).issue_until([&] { return done; });
  device.follow(side->record());
  CHECK_THROWS_WITH(device.synchronize(), Contains("nobody drives"));
  Driver driver([&] { done = true; });
  device.add(driver);
  device.synchronize();
  CHECK(driver.looks == 3);
  CHECK(driver.rests == 1);
  CHECK(device.waits() == 2);
  device.remove(driver);
}

TEST_CASE("sums that are taken later cost one wait, and are numbers of their own time") {
  SimulatedKernels kernels(device::make_reference_kernels(), lazy);
  auto arena = kernels.device().arena(Purpose::workspace, 256);
  const auto x = arena.allocate(DType::f32, {8});
  for (const float value : {1.0F, 2.0F, 3.0F}) {
    kernels.issue(device::Fill{x, value});
    kernels.start_sum(x);
    kernels.start_sum_of_squares(x);
  }
  const auto waits = kernels.device().waits();
  CHECK(kernels.finish_sums() == std::vector<double>{8, 8, 16, 32, 24, 72});
  CHECK(kernels.device().waits() == waits + 1);
  CHECK(kernels.finish_sums().empty());
}
