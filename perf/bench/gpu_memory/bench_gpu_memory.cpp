// SPDX-License-Identifier: Apache-2.0
// bench_gpu_memory: watches how much of the first GPU's memory is taken, by whatever process.
//
// Writes one line of JSON about the GPU, then looks every few milliseconds until standard input
// ends, and writes what was taken at most. Its own context is part of both figures.

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"

#include "device/cuda/runtime/call.hpp"
#include "device/cuda/runtime/cuda_device.hpp"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <iostream>

namespace {

using namespace trireme;
using device::cuda::check;

constexpr int skipped = 77;
constexpr int interval_ms = 5;

std::size_t taken_bytes() {
  std::size_t free = 0;
  std::size_t total = 0;
  check(cudaMemGetInfo(&free, &total), "cudaMemGetInfo");
  return total - free;
}

base::Json about_gpu() {
  cudaDeviceProp properties{};
  check(cudaGetDeviceProperties(&properties, 0), "cudaGetDeviceProperties");
  int driver = 0;
  int runtime = 0;
  check(cudaDriverGetVersion(&driver), "cudaDriverGetVersion");
  check(cudaRuntimeGetVersion(&runtime), "cudaRuntimeGetVersion");
  return {{"gpu", properties.name},
          {"bus_id", device::cuda::bus_id_of(0)},
          {"total_bytes", properties.totalGlobalMem},
          {"multiprocessors", properties.multiProcessorCount},
          {"l2_bytes", properties.l2CacheSize},
          {"cuda_of_driver", driver},
          {"cuda_of_runtime", runtime},
          {"taken_bytes", taken_bytes()}};
}

/// Whether somebody still holds the other end of standard input, after a pause.
bool goes_on() {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  if (::poll(&input, 1, interval_ms) <= 0) return true;
  std::array<char, 64> ignored{};
  return ::read(STDIN_FILENO, ignored.data(), ignored.size()) > 0;
}

}  // namespace

int main() {
  try {
    std::cout << base::json_text(about_gpu()) << "\n" << std::flush;
    auto most = taken_bytes();
    while (goes_on()) most = std::max(most, taken_bytes());
    std::cout << base::json_text(base::Json{{"most_taken_bytes", most}}) << "\n";
  } catch (const base::Error& error) {
    std::cout << "TRIREME_SKIP: " << error.what() << "\n";
    return skipped;
  }
  return 0;
}
