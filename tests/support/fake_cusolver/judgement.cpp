// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cusolver/judgement.hpp"

#include "support/fake_cublaslt/runtime.hpp"

#include <unistd.h>

#include <array>
#include <chrono>
#include <iostream>
#include <mutex>
#include <set>
#include <thread>

namespace trireme::testing::cusolver {
namespace {

using cublaslt::current_device;

/// Whether the host can read there now.
bool is_readable(const void* address) {
  static const std::array<int, 2> ends = [] {
    std::array<int, 2> pipe_ends{};
    return ::pipe(pipe_ends.data()) == 0 ? pipe_ends : std::array<int, 2>{-1, -1};
  }();
  if (::write(ends[1], address, 1) != 1) return false;
  char byte = 0;
  return ::read(ends[0], &byte, 1) == 1;
}

/// A simulated GPU's memory can be read while the GPU works, for which another thread may be the
/// reason: only for a moment.
bool is_host_memory(const void* address) {
  for (int tries = 0; tries < 50; ++tries) {
    if (!is_readable(address)) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace

cusolverStatus_t refuse(cusolverStatus_t status, const std::string& reason) {
  static std::mutex one_at_a_time;
  static std::set<std::string> reasons;
  const std::lock_guard guard(one_at_a_time);
  std::cerr << "fake cuSOLVER: " << reason << "\n";
  auto& controls = *fake_cusolver_controls();
  controls.last_refusal = reasons.insert(reason).first->c_str();
  ++controls.misuses;
  return status;
}

Handle* of(cusolverDnHandle_t raw) {
  auto* const handle = reinterpret_cast<Handle*>(raw);
  return handle != nullptr && handle->mark == handle_mark ? handle : nullptr;
}

cusolverStatus_t judge(const std::vector<Extent>& extents) {
  for (const auto& each : extents) {
    const std::string name = each.name;
    if (each.address == nullptr) return refuse(invalid, name + " is null");
    if (is_host_memory(each.address)) return refuse(invalid, name + " lies in host memory");
    for (const auto& other : extents) {
      if (&other == &each) break;
      if (each.begin() >= other.end() || other.begin() >= each.end()) continue;
      return refuse(invalid, name + " and " + other.name + " overlap");
    }
  }
  return fine;
}

cusolverStatus_t judge(cusolverDnHandle_t raw, const Sizes& sizes) {
  const auto* const handle = of(raw);
  if (handle == nullptr) return refuse(CUSOLVER_STATUS_NOT_INITIALIZED, "there is no handle");
  if (current_device() != handle->device) {
    return refuse(invalid, "the thread's GPU is not the handle's");
  }
  if (handle->stream == nullptr) return refuse(invalid, "the handle has no stream of the program");
  if (sizes.n < 1 || sizes.lda < sizes.n) return refuse(invalid, "a matrix without a size");
  if (sizes.given < sizes.needed) return refuse(invalid, "the workspace is too small");
  return fine;
}

}  // namespace trireme::testing::cusolver
