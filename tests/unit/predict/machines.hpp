// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/predict/machine.hpp"
#include "trireme/predict/workload.hpp"

namespace trireme::tests {

/// Two GPUs a node: 1 TFLOP/s, 1 GB/s of memory, 1 GB/s of links, 0.25 GB/s of one network
/// interface, no latencies, no tiles, no gaps.
predict::Machine plain_machine();

/// Four layers of hidden size 8 with 2 heads, 16 tokens, on one rank.
predict::Workload small_workload();

/// GPT-3 175B on 1,024 ranks: tp 8, pp 16, dp 8.
predict::Workload large_workload();

}  // namespace trireme::tests
