// SPDX-License-Identifier: Apache-2.0
// Rules and memory of a decoder, from its options alone.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/inference/decoder.hpp"
#include "trireme/layout/arrange.hpp"
#include "trireme/model/positions.hpp"

namespace trireme::inference {

bool can_decode_on_gpus(const model::ModelConfig& model) {
  return model.head_dim <= device::widest_own_head;
}

base::Status check(const DecoderOptions& options) {
  if (auto status = model::check(options.model); !status.ok()) return status;
  layout::ParallelArrangement arrangement{
      .virtual_stages = 1,
      .stage_layers =
          std::vector<std::int64_t>(options.stage_layers.begin(), options.stage_layers.end())};
  layout::describe(options.mesh, arrangement);
  model::describe(options.model, arrangement);
  if (auto status = layout::check(arrangement); !status.ok()) return status;
  if (auto status = model::check_positions(
          options.model,
          base::format("the longest prompt with --max-tokens, {} tokens in all,",
                       options.capacity.positions),
          options.capacity.positions);
      !status.ok()) {
    return status;
  }
  if (options.gpu_attention && !can_decode_on_gpus(options.model)) {
    return base::usage_failure(base::format(
        "model.head_dim = {} but numerics.backend = cuda (decoding is own kernels' alone, which "
        "take heads of up to {} on GPUs); use numerics.backend = auto",
        options.model.head_dim, device::widest_own_head));
  }
  return {};
}

engine::MemoryUse measure(const DecoderOptions& options) {
  const auto groups =
      comm::make_dry_run_groups(options.mesh, options.rank, comm::DryRunData::untouched);
  auto memory = engine::Memory::measuring();
  const auto kernels = device::make_measuring_kernels();
  Decoder decoder(options, groups.views(), *kernels, memory);
  decoder.run_largest();
  return memory.peak_bytes();
}

}  // namespace trireme::inference
