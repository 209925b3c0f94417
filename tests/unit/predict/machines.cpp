// SPDX-License-Identifier: Apache-2.0
#include "machines.hpp"

namespace trireme::tests {

predict::Machine plain_machine() {
  predict::Machine machine;
  machine.name = "plain";
  machine.node = {.gpus = 2,
                  .cores = 4,
                  .peak_fp32 = 1e12,
                  .peak_bf16 = 1e12,
                  .peak_fp8 = 2e12,
                  .memory = 1 << 30,
                  .memory_rate = 1e9};
  machine.inside = {.rate = 1e9, .latency = 0, .hop = 0, .messages = {}};
  machine.network = {.rate = 0.25e9, .latency = 0, .hop = 0, .messages = {}};
  machine.nics = 2;
  return machine;
}

predict::Workload small_workload() {
  predict::Workload workload;
  workload.shape = {.layers = 4,
                    .hidden = 8,
                    .heads = 2,
                    .kv_heads = 2,
                    .head_width = 4,
                    .intermediate = 32,
                    .gated_mlp = false,
                    .vocabulary = 64,
                    .tied_head = false,
                    .sequence = 16};
  workload.program.launch_gap = 0;
  return workload;
}

predict::Workload large_workload() {
  predict::Workload workload;
  workload.shape = {.layers = 96,
                    .hidden = 12288,
                    .heads = 96,
                    .kv_heads = 96,
                    .head_width = 128,
                    .intermediate = 49152,
                    .gated_mlp = false,
                    .vocabulary = 51200,
                    .tied_head = false,
                    .sequence = 2048};
  workload.degrees = {.tensor = 8, .context = 1, .data = 8, .pipeline = 16};
  workload.micro_batches.count = 192;
  workload.program.sequence_parallel = true;
  workload.program.sharding = predict::Sharding::optimizer;
  return workload;
}

}  // namespace trireme::tests
