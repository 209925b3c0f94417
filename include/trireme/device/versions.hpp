// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/library_version.hpp"

#include <string>
#include <vector>

namespace trireme::device {

/// The libraries of this room, as they are at run time.
std::vector<base::LibraryVersion> library_versions();

/// Vector and matrix instructions of this CPU that kernels here or in oneDNN choose between,
/// in the compiler's words: "avx2", "avx512f", "amx-bf16"...
std::vector<std::string> cpu_instruction_sets();

/// Model of this machine's CPU as the kernel names it; its architecture where it names none.
std::string cpu_model();

}  // namespace trireme::device
