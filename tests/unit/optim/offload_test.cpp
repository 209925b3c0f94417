// SPDX-License-Identifier: Apache-2.0
// State at home in host memory, as it passes through a device: one that does what streams and
// events allow it to, in any order.
#include "trireme/device/host_tier.hpp"
#include "trireme/optim/optimizer.hpp"

#include "support/simulated_gpu/device.hpp"

#include <catch2/catch.hpp>

#include <cstring>
#include <optional>
#include <string>
#include <vector>

using namespace trireme;
using device::Arena;
using device::DType;
using device::Purpose;
using device::Tensor;
using testing::Haste;
using testing::SimulatedKernels;

namespace {

constexpr std::int64_t elements = 1000;
/// Chunks of 96 elements: masters and two moments each.
constexpr std::int64_t chunk_bytes = 1200;

/// Longer than chunks, shorter, and over their ends; what lies between is nobody's.
std::vector<optim::Segment> segments() {
  std::vector<optim::Segment> all;
  for (const auto& [begin, end] : {std::pair{0, 300}, {300, 310}, {320, 384}, {384, 999}}) {
    all.push_back({.flat = {begin, end}, .state_begin = begin, .decays = begin % 20 == 0});
  }
  return all;
}

enum class Home { device, host };

/// An optimizer on a simulated GPU.
class Updated {
 public:
  Updated(const Haste& haste, Home home)
      : kernels_(device::make_reference_kernels(), haste),
        arena_(kernels_.device().arena(Purpose::optimizer, std::size_t{64} << 10)),
        homes_(kernels_.device().staging(Purpose::offloaded, std::size_t{64} << 10)),
        tier_(kernels_.device(), homes_),
        parameters_(arena_.allocate(DType::bf16, {elements})),
        gradients_(arena_.allocate(DType::f32, {elements})),
        optimizer_(optim::Rule{}, segments(), {elements, 0, 0}, parameters_, arena_, {},
                   home == Home::host
                       ? std::optional(optim::StateOffload{tier_, homes_, chunk_bytes})
                       : std::nullopt) {
    for (const auto& values : state()) {
      device::HostMirror mirror(tier_);
      const auto here = mirror.of(values);
      for (std::int64_t at = 0; at < elements; ++at) {
        here.f32()[at] = 1e-3F * static_cast<float>(at % 37);
      }
      mirror.store();
    }
    optimizer_.state_changed(kernels_, 0);
  }
  ~Updated() { tier_.synchronize(); }
  Updated(const Updated&) = delete;
  Updated& operator=(const Updated&) = delete;

  void update(int number) {
    kernels_.issue(device::Fill{gradients_, 0.1F * static_cast<float>(number)});
    optimizer_.update(kernels_, arena_, gradients_, 1e-2F, 0.5F, number);
  }
  /// Bytes of parameters, masters and moments.
  std::string bytes() {
    std::string all;
    auto values = state();
    values.push_back(parameters_);
    for (const auto& each : values) {
      device::HostMirror mirror(tier_);
      const auto here = mirror.of(each);
      mirror.fetch();
      all.append(static_cast<const char*>(here.raw()), here.byte_count());
    }
    return all;
  }
  std::vector<Tensor> state() const {
    std::vector<Tensor> all{optimizer_.state().master({.flat = {0, elements}})};
    for (const auto& each : optimizer_.state().all()) all.push_back(each.values);
    return all;
  }
  device::HostTier& tier() { return tier_; }
  const optim::Optimizer& optimizer() const { return optimizer_; }
  SimulatedKernels& kernels() { return kernels_; }

 private:
  SimulatedKernels kernels_;
  Arena arena_;
  Arena homes_;
  device::HostTier tier_;
  Tensor parameters_;
  Tensor gradients_;
  optim::Optimizer optimizer_;
};

}  // namespace

TEST_CASE("state at home has the bits of state on the device, whenever copies are done") {
  const auto kind = GENERATE(Haste::Kind::lazy, Haste::Kind::eager, Haste::Kind::mixed);
  const auto seed = static_cast<std::uint64_t>(GENERATE(1, 2, 3, 4, 5, 6, 7, 8));
  Updated resident({kind, seed}, Home::device);
  Updated offloaded({kind, seed}, Home::host);
  CHECK(offloaded.bytes() == resident.bytes());
  for (int number = 1; number <= 4; ++number) {
    resident.update(number);
    offloaded.update(number);
    // Also with nothing awaited between two updates.
    if (number != 2) CHECK(offloaded.bytes() == resident.bytes());
  }
}

TEST_CASE("an update moves all of the state both ways, in chunks that device memory is taken for") {
  Updated offloaded({}, Home::host);
  const auto before = offloaded.tier().moved_bytes();
  offloaded.update(1);
  CHECK(offloaded.tier().moved_bytes() - before == 2 * 3 * elements * sizeof(float));
  for (const auto& values : offloaded.state()) CHECK(offloaded.tier().is_home(values.raw()));
}

TEST_CASE("values at home are read where kernels reach them, as many elements at a time") {
  Updated offloaded({Haste::Kind::mixed, 5}, Home::host);
  offloaded.update(1);
  const auto master = offloaded.state().front();
  device::HostMirror mirror(offloaded.tier());
  const auto expected = mirror.of(master.slice(0, 10, 500));
  mirror.fetch();
  std::vector<float> found;
  std::vector<std::int64_t> counts;
  offloaded.optimizer().read(master.slice(0, 10, 500), [&](const Tensor& part) {
    CHECK(testing::lies_on_device(part.raw()));
    counts.push_back(part.element_count());
    device::HostMirror there(offloaded.kernels().device());
    const auto values = there.of(part);
    there.fetch();
    found.insert(found.end(), values.f32(), values.f32() + values.element_count());
  });
  CHECK(counts == std::vector<std::int64_t>{96, 96, 96, 96, 96, 20});
  CHECK(std::memcmp(found.data(), expected.f32(), found.size() * sizeof(float)) == 0);
}
