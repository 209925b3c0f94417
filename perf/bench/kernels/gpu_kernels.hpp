// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace trireme::bench {

/// Times each kernel whose name holds `only` on the first GPU, in rows of JSON on stdout: first
/// the ceilings ("copy", and a GEMM of random numbers of each type), then kernels with their
/// share of the ceiling that bounds them. An exit code; without a GPU 77 with the words that mark
/// a skip.
int measure_on_gpu(const std::string& only);

}  // namespace trireme::bench
