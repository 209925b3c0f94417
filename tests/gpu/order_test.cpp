// SPDX-License-Identifier: Apache-2.0
// The order of a GPU's streams, what watches a wait, and numbers that the host takes later.
#include "trireme/device/device.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/runtime/stream.hpp"
#include "unit/device/compare.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <vector>

using namespace trireme;
using namespace trireme::device;
using device::test::take_large_shapes;

namespace {

class Looks final : public Watcher {
 public:
  void look() override { ++count; }
  int count = 0;
};

/// A large tensor of a GPU, so that what is issued takes a while.
struct Gpu {
  std::unique_ptr<Kernels> kernels = base::value_or_throw(make_cuda_kernels(0));
  Device& device = kernels->device();
  const std::int64_t count = std::int64_t{1} << (take_large_shapes() ? 26 : 10);
  Arena arena =
      device.arena(Purpose::workspace, 3 * static_cast<std::size_t>(count) * sizeof(float));
  Tensor x = arena.allocate(DType::f32, {count});
  Tensor y = arena.allocate(DType::f32, {count});
  Tensor z = arena.allocate(DType::f32, {count});

  /// A copy by a side stream, as a library would issue it.
  void copy_on(SideStream& side, const Tensor& from, const Tensor& to) const {
    cuda::check(cudaMemcpyAsync(to.raw(), from.raw(), from.byte_count(), cudaMemcpyDeviceToDevice,
                                static_cast<cudaStream_t>(side.handle())),
                "cudaMemcpyAsync");
  }
};

}  // namespace

TEST_CASE("a side stream follows its device, and the device follows it, without the host") {
  Gpu gpu;
  for (const auto priority : {Priority::overlapped, Priority::awaited}) {
    const auto side = gpu.device.side_stream(priority);
    for (int round = 1; round <= 20; ++round) {
      const auto value = static_cast<float>(round);
      gpu.kernels->issue(Fill{gpu.y, -1.0F});
      gpu.kernels->issue(Fill{gpu.x, value});
      side->follow(gpu.device.record());
      gpu.copy_on(*side, gpu.x, gpu.y);
      gpu.device.follow(side->record());
      gpu.device.copy(gpu.y, gpu.z);
      gpu.kernels->issue(Fill{gpu.x, 0.0F});
      gpu.kernels->start_sum(gpu.z);
    }
    const auto sums = gpu.kernels->finish_sums();
    REQUIRE(sums.size() == 20);
    for (std::size_t round = 0; round < sums.size(); ++round) {
      CHECK(sums[round] == static_cast<double>(gpu.count) * static_cast<double>(round + 1));
    }
  }
}

TEST_CASE("sums that are taken later are those that are waited for") {
  Gpu gpu;
  gpu.kernels->issue(Fill{gpu.x, 0.375F});
  std::vector<double> expected;
  for (std::int64_t size = 1; size <= gpu.count; size *= 7) {
    const auto part = gpu.x.slice(0, 0, size);
    expected.push_back(gpu.kernels->sum(part));
    expected.push_back(gpu.kernels->sum_of_squares(part));
    gpu.kernels->start_sum(part);
    gpu.kernels->start_sum_of_squares(part);
  }
  CHECK(gpu.kernels->finish_sums() == expected);
  CHECK(gpu.kernels->finish_sums().empty());
}

TEST_CASE("watchers look while the host waits for a GPU") {
  Gpu gpu;
  Looks looks;
  gpu.device.add(looks);
  for (int round = 0; round < 50; ++round) gpu.kernels->issue(Copy{gpu.x, gpu.y});
  const auto waits = gpu.device.waits();
  gpu.device.synchronize();
  // A GPU that is made of the host may have done all of it by then.
  if (take_large_shapes()) CHECK(looks.count > 0);
  CHECK(gpu.device.waits() == waits + 1);
  gpu.device.remove(looks);
}

TEST_CASE("a stopwatch of a GPU tells how long its stream took") {
  Gpu gpu;
  const auto watch = gpu.device.stopwatch();
  gpu.kernels->issue(Fill{gpu.x, 1.0F});
  gpu.device.synchronize();
  watch->start();
  for (int round = 0; round < 10; ++round) gpu.kernels->issue(Copy{gpu.x, gpu.y});
  watch->stop();
  gpu.device.synchronize();
  const auto seconds = watch->take();
  // Ten times 512 MiB: no GPU moves that in less.
  CHECK(seconds > 1e-4);
  CHECK(seconds < 10);
  CHECK(watch->take() == 0.0);
}

TEST_CASE("what a GPU has recorded it does again, with what is in memory then") {
  Gpu gpu;
  const auto body = [&] {
    gpu.device.copy(gpu.x, gpu.y);
    gpu.kernels->issue(Add{gpu.y, gpu.z, gpu.z});
  };
  gpu.kernels->issue(Fill{gpu.z, 0.0F});
  gpu.kernels->issue(Fill{gpu.x, 1.0F});
  body();
  gpu.device.begin_capture();
  CHECK(gpu.device.capturing());
  body();
  const auto graph = gpu.device.end_capture();
  CHECK(!gpu.device.capturing());
  for (const float value : {2.0F, 3.0F}) {
    gpu.kernels->issue(Fill{gpu.x, value});
    graph->launch();
  }
  CHECK(gpu.kernels->sum(gpu.z) == 6.0 * static_cast<double>(gpu.count));
}

TEST_CASE("a GPU refuses to record waits, and goes on") {
  Gpu gpu;
  gpu.kernels->issue(Fill{gpu.x, 1.0F});
  gpu.device.begin_capture();
  CHECK_THROWS_AS(gpu.kernels->sum(gpu.x), base::Error);
  gpu.device.abandon_capture();
  CHECK(gpu.kernels->sum(gpu.x) == static_cast<double>(gpu.count));
}
