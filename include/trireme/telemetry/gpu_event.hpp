// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

namespace trireme::telemetry {

enum class GpuEventKind {
  kernel,
  memory_copy,
  memory_set,
  call  ///< of the host, which has issued one of the others
};

/// Something that a GPU did. Times are nanoseconds of a clock that the owner knows.
struct GpuEvent {
  GpuEventKind kind = GpuEventKind::kernel;
  std::string name;
  std::int64_t begin = 0;
  std::int64_t end = 0;
  int device = 0;
  int stream = 0;  ///< of a call: none
  /// The same for a call and what it has issued.
  std::uint64_t correlation = 0;
  std::uint64_t bytes = 0;  ///< of copies and settings of memory
  /// Serial of the span that it was issued in; 0: none.
  std::uint64_t span = 0;
};

}  // namespace trireme::telemetry
