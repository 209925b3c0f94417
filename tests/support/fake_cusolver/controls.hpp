// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::testing {

/// Words between tests and the stand-in of cuSOLVER. They find it by the function
/// fake_cusolver_controls of the library that they have opened.
struct CusolverControls {
  /// As many of the next eigendecompositions do not converge.
  std::uint64_t failing_in_float = 0;
  std::uint64_t failing_in_double = 0;

  /// Routines that were computed.
  std::uint64_t in_float = 0;
  std::uint64_t in_double = 0;
  std::uint64_t qr = 0;
  std::uint64_t bases = 0;
  /// Calls that the documents do not allow.
  std::uint64_t misuses = 0;
  /// The last reason for which something was refused.
  const char* last_refusal = "";
};

using CusolverControlsFunction = CusolverControls*();

}  // namespace trireme::testing
