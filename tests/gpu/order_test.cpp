// The order of a card's streams, what watches a wait, and numbers that the host takes later.
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

/// A large tensor of a card, so that what is issued takes a while.
struct Card {
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
  Card card;
  for (const auto priority : {Priority::overlapped, Priority::awaited}) {
    const auto side = card.device.side_stream(priority);
    for (int round = 1; round <= 20; ++round) {
      const auto value = static_cast<float>(round);
      card.kernels->fill(card.y, -1.0F);
      card.kernels->fill(card.x, value);
      side->follow(card.device.record());
      card.copy_on(*side, card.x, card.y);
      card.device.follow(side->record());
      card.device.copy(card.y, card.z);
      card.kernels->fill(card.x, 0.0F);
      card.kernels->start_sum(card.z);
    }
    const auto sums = card.kernels->finish_sums();
    REQUIRE(sums.size() == 20);
    for (std::size_t round = 0; round < sums.size(); ++round) {
      CHECK(sums[round] == static_cast<double>(card.count) * static_cast<double>(round + 1));
    }
  }
}

TEST_CASE("sums that are taken later are those that are waited for") {
  Card card;
  card.kernels->fill(card.x, 0.375F);
  std::vector<double> expected;
  for (std::int64_t size = 1; size <= card.count; size *= 7) {
    const auto part = card.x.slice(0, 0, size);
    expected.push_back(card.kernels->sum(part));
    expected.push_back(card.kernels->sum_of_squares(part));
    card.kernels->start_sum(part);
    card.kernels->start_sum_of_squares(part);
  }
  CHECK(card.kernels->finish_sums() == expected);
  CHECK(card.kernels->finish_sums().empty());
}

TEST_CASE("watchers look while the host waits for a card") {
  Card card;
  Looks looks;
  card.device.add(looks);
  for (int round = 0; round < 50; ++round) card.kernels->copy(card.x, card.y);
  const auto waits = card.device.waits();
  card.device.synchronize();
  // A card that is made of the host may have done all of it by then.
  if (take_large_shapes()) CHECK(looks.count > 0);
  CHECK(card.device.waits() == waits + 1);
  card.device.remove(looks);
}

TEST_CASE("a stopwatch of a card tells how long its stream took") {
  Card card;
  const auto watch = card.device.stopwatch();
  card.kernels->fill(card.x, 1.0F);
  card.device.synchronize();
  watch->start();
  for (int round = 0; round < 10; ++round) card.kernels->copy(card.x, card.y);
  watch->stop();
  card.device.synchronize();
  const auto seconds = watch->take();
  // Ten times 512 MiB: no card moves that in less.
  CHECK(seconds > 1e-4);
  CHECK(seconds < 10);
  CHECK(watch->take() == 0.0);
}

TEST_CASE("what a card has recorded it does again, with what is in memory then") {
  Card card;
  const auto body = [&] {
    card.device.copy(card.x, card.y);
    card.kernels->add(card.y, card.z, card.z);
  };
  card.kernels->fill(card.z, 0.0F);
  card.kernels->fill(card.x, 1.0F);
  body();
  card.device.begin_capture();
  CHECK(card.device.capturing());
  body();
  const auto graph = card.device.end_capture();
  CHECK(!card.device.capturing());
  for (const float value : {2.0F, 3.0F}) {
    card.kernels->fill(card.x, value);
    graph->launch();
  }
  CHECK(card.kernels->sum(card.z) == 6.0 * static_cast<double>(card.count));
}

TEST_CASE("a card refuses to record waits, and goes on") {
  Card card;
  card.kernels->fill(card.x, 1.0F);
  card.device.begin_capture();
  CHECK_THROWS_AS(card.kernels->sum(card.x), base::Error);
  card.device.abandon_capture();
  CHECK(card.kernels->sum(card.x) == static_cast<double>(card.count));
}
