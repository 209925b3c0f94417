// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

namespace trireme::bench {

/// Bytes a second, read and written, of the driver's own copy inside a GPU: the fastest of several
/// rounds over arrays of `bytes` that no cache holds. What kernels bound by memory are held
/// against.
double gpu_copy_rate(std::int64_t bytes);

}  // namespace trireme::bench
