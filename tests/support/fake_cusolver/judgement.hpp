// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_cusolver/controls.hpp"

#include <cusolverDn.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

extern "C" trireme::testing::CusolverControls* fake_cusolver_controls();

/// Calls that the documents do not allow are refused with a reason.
namespace trireme::testing::cusolver {

inline constexpr auto fine = CUSOLVER_STATUS_SUCCESS;
inline constexpr auto invalid = CUSOLVER_STATUS_INVALID_VALUE;
inline constexpr std::uint64_t handle_mark = 0x736F6C7665722E2E;

/// cusolverDnHandle_t.
struct Handle {
  std::uint64_t mark = 0;
  int device = 0;
  cudaStream_t stream = nullptr;
};

/// Says why on stderr and to the controls.
cusolverStatus_t refuse(cusolverStatus_t status, const std::string& reason);

/// Null: it is none.
Handle* of(cusolverDnHandle_t raw);

/// Memory that a routine reads or writes.
struct Extent {
  const char* name;
  const void* address;
  std::size_t bytes;

  std::uintptr_t begin() const { return reinterpret_cast<std::uintptr_t>(address); }
  std::uintptr_t end() const { return begin() + bytes; }
};

/// Each of them memory of a GPU, and none in another.
cusolverStatus_t judge(const std::vector<Extent>& extents);

/// A square matrix, and memory to work in.
struct Sizes {
  int n = 0;
  int lda = 0;
  int given = 0;
  int needed = 0;
};

cusolverStatus_t judge(cusolverDnHandle_t raw, const Sizes& sizes);

}  // namespace trireme::testing::cusolver
