// SPDX-License-Identifier: Apache-2.0
// usage: bench_offload [cpu | cuda [MILLIONS [CHUNK_MIB [ROUNDS]]]]
// AdamW's update of so many million bf16 parameters, with masters and moments in the device's
// memory and at home in the host's, turn about: bytes moved a step, and the time beside that of the
// resident update and beside the copies alone. On cpu both memories are the host's.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/device/compute_threads.hpp"
#include "trireme/device/host_tier.hpp"
#include "trireme/device/kernels.hpp"
#include "trireme/optim/optimizer.hpp"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace {

using namespace trireme;
using device::Arena;
using device::DType;
using device::Purpose;
using device::Tensor;

struct Settings {
  std::string backend = "cpu";
  std::int64_t elements = 64'000'000;
  std::int64_t chunk_bytes = std::int64_t{64} << 20;
  int rounds = 7;
};

constexpr std::size_t state_bytes = 3 * sizeof(float);  // a parameter's master and moments

/// An optimizer with its parameters and gradients; state lies on the device, or has a home.
class Updated {
 public:
  enum class Home { device, host };

  Updated(const Settings& settings, device::Kernels& kernels, Home home)
      : kernels_(kernels),
        arena_(kernels.device().arena(Purpose::optimizer, device_bytes(settings, home))),
        homes_(kernels.device().staging(Purpose::offloaded,
                                        home == Home::host ? all_bytes(settings) : 0)),
        parameters_(arena_.allocate(DType::bf16, {settings.elements})),
        gradients_(arena_.allocate(DType::f32, {settings.elements})),
        tier_(kernels.device(), homes_),
        optimizer_(optim::Rule{}, {{.flat = {0, settings.elements}}}, {settings.elements, 0, 0},
                   parameters_, arena_, {},
                   home == Home::host
                       ? std::optional(optim::StateOffload{tier_, homes_, settings.chunk_bytes})
                       : std::nullopt) {
    kernels.issue(device::Fill{gradients_, 1e-3F});
    if (home == Home::host) {
      std::memset(homes_.whole().raw(), 0, homes_.whole().byte_count());
    } else {
      const auto& state = optimizer_.state();
      for (const auto& each : state.all()) kernels.issue(device::Fill{each.values, 0.0F});
      kernels.issue(device::Fill{state.master(state.segments().front()), 0.0F});
    }
    kernels.synchronize();
  }

  double seconds() {
    const auto begin = std::chrono::steady_clock::now();
    optimizer_.update(kernels_, arena_, gradients_, 1e-3F, 1.0F, ++step_);
    tier_.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }
  std::size_t moved_bytes() const {
    return step_ > 0 ? tier_.moved_bytes() / static_cast<std::size_t>(step_) : 0;
  }

 private:
  static std::size_t all_bytes(const Settings& settings) {
    return static_cast<std::size_t>(settings.elements) * state_bytes + 4 * Arena::alignment;
  }
  static std::size_t device_bytes(const Settings& settings, Home home) {
    const auto weights = static_cast<std::size_t>(settings.elements) * (2 + sizeof(float));
    const auto ring = 3 * static_cast<std::size_t>(settings.chunk_bytes);
    return weights + (home == Home::host ? ring : all_bytes(settings)) + 16 * Arena::alignment;
  }

  device::Kernels& kernels_;
  Arena arena_;
  Arena homes_;
  Tensor parameters_;
  Tensor gradients_;
  device::HostTier tier_;
  optim::Optimizer optimizer_;
  std::int64_t step_ = 0;
};

/// Copies of as many bytes as an update moves, both ways, without the update.
class Copies {
 public:
  Copies(const Settings& settings, device::Kernels& kernels)
      : device_(kernels.device()),
        count_(settings.chunk_bytes / std::int64_t{sizeof(float)}),
        chunks_(static_cast<std::int64_t>(state_bytes) * settings.elements / settings.chunk_bytes),
        places_(device_.arena(Purpose::workspace, bytes())),
        homes_(device_.staging(Purpose::offloaded, bytes())),
        tier_(device_, homes_) {
    for (auto& guest : guests_) {
      guest = {homes_.allocate(DType::f32, {count_}), places_.allocate(DType::f32, {count_})};
    }
    std::memset(homes_.whole().raw(), 0, homes_.whole().byte_count());
  }
  double seconds() {
    const auto begin = std::chrono::steady_clock::now();
    for (std::int64_t chunk = 0; chunk < std::max<std::int64_t>(chunks_, 1); ++chunk) {
      tier_.store({&guests_[0], 1}, {});
      tier_.fetch({&guests_[1], 1}, {});
    }
    tier_.synchronize();
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  }

 private:
  std::size_t bytes() const { return 2 * static_cast<std::size_t>(count_) * sizeof(float); }

  device::Device& device_;
  std::int64_t count_;
  std::int64_t chunks_;
  Arena places_;
  Arena homes_;
  device::HostTier tier_;
  device::Guest guests_[2];
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

void run(const Settings& settings) {
  const auto kernels = settings.backend == "cuda"
                           ? base::value_or_throw(device::make_cuda_kernels(0))
                           : device::make_cpu_kernels(1);
  Updated resident(settings, *kernels, Updated::Home::device);
  Updated offloaded(settings, *kernels, Updated::Home::host);
  Copies copies(settings, *kernels);
  std::vector<double> times[3];
  for (int round = 0; round <= settings.rounds; ++round) {
    const double seconds[] = {resident.seconds(), offloaded.seconds(), copies.seconds()};
    // The first touches memory.
    for (int index = 0; round > 0 && index < 3; ++index) times[index].push_back(seconds[index]);
  }
  const auto moved = static_cast<double>(offloaded.moved_bytes());
  const double each[] = {median(times[0]), median(times[1]), median(times[2])};
  std::cout << base::format(
      "{}: {:.1f} million bf16 parameters, AdamW, chunks of {} MiB; {:.2f} GB moved a step\n"
      "resident {:.2f} ms, state in host memory {:.2f} ms ({:.2f} of it), copies alone {:.2f} ms "
      "({:.1f} GB/s both ways)\n",
      kernels->device().name(), static_cast<double>(settings.elements) / 1e6,
      settings.chunk_bytes >> 20, moved / 1e9, each[0] * 1e3, each[1] * 1e3, each[1] / each[0],
      each[2] * 1e3, moved / each[2] / 1e9);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.backend = argv[1];
  if (argc > 2) settings.elements = std::atoll(argv[2]) * 1'000'000;
  if (argc > 3) settings.chunk_bytes = std::atoll(argv[3]) << 20;
  if (argc > 4) settings.rounds = std::atoi(argv[4]);
  if (settings.elements < 1 || settings.chunk_bytes < 1 || settings.rounds < 1) {
    std::cerr << "usage: bench_offload [cpu | cuda [MILLIONS [CHUNK_MIB [ROUNDS]]]]\n";
    return 2;
  }
  run(settings);
  return 0;
}
