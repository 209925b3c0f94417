// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/device/compute_threads.hpp"
#include "trireme/device/measure.hpp"
#include "trireme/device/versions.hpp"

/// The cpu backend of a build for another architecture than x86-64.
namespace trireme::device {
namespace {

[[noreturn]] void refuse() {
  throw base::Error(base::ExitCode::topology,
                    "this build is for a CPU without AVX2 (the cpu backend is built on it); set "
                    "numerics.backend = reference");
}

}  // namespace

std::unique_ptr<Kernels> make_cpu_kernels(int, Tiling) {
  refuse();
}

std::unique_ptr<Kernels> make_cpu_kernels(int, Tiling, ThreadWait) {
  refuse();
}

PeakRate measured_peak(DType, int) {
  refuse();
}

std::vector<base::LibraryVersion> library_versions() {
  return {};
}

std::vector<std::string> cpu_instruction_sets() {
  return {};
}

}  // namespace trireme::device
