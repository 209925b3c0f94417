// SPDX-License-Identifier: Apache-2.0
// Parts of a step that are captured once and launched again, on a device that does what it kept.
#include "engine/graphs/cuda_graph_cache.hpp"

#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace trireme;
using namespace trireme::testing;
using device::DType;
using device::Tensor;
using engine::CudaGraphCache;

namespace {

struct Place {
  SimulatedKernels kernels{device::make_reference_kernels()};
  device::Arena arena = kernels.device().arena(device::Purpose::activations, 4096);
  CudaGraphCache cache{kernels.device()};

  Tensor make(float value) {
    const auto x = arena.allocate(DType::f32, {4});
    kernels.issue(device::Fill{x, value});
    return x;
  }
  double sum(const Tensor& x) { return kernels.sum(x); }
};

}  // namespace

TEST_CASE(
    "a part runs as it is, then is captured, then is launched, and reads what is there then") {
  Place place;
  const auto x = place.make(1);
  const auto y = place.make(0);
  int bodies = 0;
  for (int round = 1; round <= 5; ++round) {
    place.kernels.issue(device::Fill{x, static_cast<float>(round)});
    place.cache.run({0, {x.raw(), y.raw()}}, [&] {
      ++bodies;
      place.kernels.issue(device::Add{x, y, y});
    });
  }
  CHECK(bodies == 2);
  CHECK(place.cache.captured() == 1);
  CHECK(place.cache.launched() == 4);
  CHECK(place.sum(y) == 4 * (1 + 2 + 3 + 4 + 5));
}

TEST_CASE("other addresses and parts have graphs of their own") {
  Place place;
  const Tensor tensors[] = {place.make(1), place.make(2)};
  const auto y = place.make(0);
  const auto z = place.make(0);
  for (int round = 0; round < 6; ++round) {
    const auto& x = tensors[round % 2];
    const float number = round < 4 ? 1.0F : 2.0F;
    place.cache.run({round < 4 ? 0 : 1, {x.raw(), y.raw()}}, [&] {
      place.kernels.issue(device::Add{x, y, y});
      place.kernels.issue(device::Fill{z, number});
      place.kernels.issue(device::Add{y, z, y});
    });
  }
  double expected = 0;
  for (int round = 0; round < 6; ++round) {
    expected += (round % 2 == 0 ? 1 : 2) + (round < 4 ? 1 : 2);
  }
  CHECK(place.sum(y) == 4 * expected);
  CHECK(place.cache.captured() == 2);
}

TEST_CASE("a key that leaves out an address is found out: the graph has the old one") {
  Place place;
  const Tensor tensors[] = {place.make(1), place.make(10)};
  const auto y = place.make(0);
  for (int round = 0; round < 4; ++round) {
    const auto& x = tensors[round / 2];
    place.cache.run({0, {y.raw()}}, [&] { place.kernels.issue(device::Add{x, y, y}); });
  }
  CHECK(place.sum(y) != 4 * (1 + 1 + 10 + 10));
}

TEST_CASE("what cannot be captured runs as it is, and a reason stays") {
  Place place;
  const auto x = place.make(1);
  float host = 3;
  std::vector<double> seen;
  const auto side = place.kernels.device().side_stream(device::Priority::awaited);
  const auto refuses = [&](const auto& body, const char* reason) {
    CudaGraphCache cache(place.kernels.device());
    for (int round = 0; round < 3; ++round) cache.run({0, {x.raw()}}, body);
    CHECK(cache.captured() == 0);
    CHECK(cache.launched() == 0);
    CHECK(cache.reason() == reason);
    CHECK(!place.kernels.device().capturing());
  };
  refuses([&] { seen.push_back(place.kernels.sum(x)); }, "a sum for the host cannot be recorded");
  refuses([&] { place.kernels.start_sum(x); }, "a sum for the host cannot be recorded");
  refuses([&] { place.kernels.device().copy_in(&host, x.slice(0, 0, 1)); },
          "a copy from the host cannot be recorded");
  refuses([&] { place.kernels.device().copy_out(x.slice(0, 0, 1), &host); },
          "a copy to the host cannot be recorded");
  refuses([&] { place.kernels.device().record(); }, "an event cannot be recorded");
  refuses([&] { place.kernels.device().follow(side->record()); }, "an event cannot be recorded");
  refuses([&] { place.kernels.device().arena(device::Purpose::workspace, 64); },
          "new memory cannot be recorded");
  CHECK(seen == std::vector<double>(3, 4.0));
  CHECK(place.kernels.finish_sums().size() == 3);
}

TEST_CASE("parts that never repeat are not captured for ever") {
  Place place;
  const auto y = place.make(0);
  for (std::size_t round = 0; round < CudaGraphCache::most_keys + 5; ++round) {
    place.cache.run({static_cast<int>(round), {y.raw()}}, [&] {
      place.kernels.issue(device::Add{y, y, y});
    });
  }
  CHECK_THAT(place.cache.reason(), Catch::Contains("more than 128 different parts"));
}

TEST_CASE("all parts of a long step are captured, if each has addresses of its own") {
  Place place;
  const auto y = place.make(0);
  const std::size_t parts = CudaGraphCache::most_keys + 5;
  CudaGraphCache cache(place.kernels.device(), parts);
  for (std::size_t round = 0; round < 3 * parts; ++round) {
    cache.run({static_cast<int>(round % parts), {y.raw()}}, [&] {
      place.kernels.issue(device::Add{y, y, y});
    });
  }
  CHECK(cache.reason().empty());
  CHECK(cache.captured() == parts);
  CHECK(cache.launched() == 2 * parts);
  cache.run({static_cast<int>(parts), {y.raw()}}, [] {});
  CHECK_THAT(cache.reason(), Catch::Contains("more than 133 different parts"));
}

TEST_CASE("a device that captures nothing says so") {
  CudaGraphCache cache(device::host_device());
  int bodies = 0;
  for (int round = 0; round < 3; ++round) cache.run({0, {}}, [&] { ++bodies; });
  CHECK(bodies == 3);
  CHECK(cache.reason() == "host records no work");
}
