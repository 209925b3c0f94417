// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/data/tokenizer.hpp"
#include "trireme/engine/measure.hpp"
#include "trireme/inference/generate.hpp"
#include "trireme/inference/sampling.hpp"
#include "trireme/model/model_config.hpp"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::inference {

/// Prompts that a run continues after each evaluation (train.sample_prompts), and by which rule.
struct SampleTask {
  /// Texts, in order: on the first rank alone.
  std::vector<std::string> prompts;
  /// Their tokens: ids[prompt].
  std::vector<std::vector<std::int32_t>> ids;
  /// Number of valid tokens.
  std::int64_t vocabulary = 1;
  std::vector<std::int32_t> stop_tokens;
  /// New tokens for each prompt at most.
  std::int64_t max_tokens = 1;
  Sampling sampling;
  /// On the first rank alone.
  std::optional<data::Tokenizer> tokenizer;

  /// Most prompts, and bytes of their file: what they become is a line of metrics.jsonl.
  static constexpr std::size_t most_prompts = 64;
  static constexpr std::size_t most_bytes = std::size_t{256} << 10;
};

/// The configured task; nothing where train.sample_prompts is empty. Failures (usage): the file
/// cannot be read, has no prompt or too many, no tokenizer belongs to the run or it is not the
/// model's, or a prompt with its answer is longer than the model has positions.
base::Result<std::optional<SampleTask>> read_sample_task(const config::Config& config,
                                                         const model::ModelConfig& model);

/// Collective over the world. The same, read by the first rank for all.
std::optional<SampleTask> agreed_sample_task(const config::Config& config,
                                             const model::ModelConfig& model,
                                             comm::ProcessGroup& world);

/// The decoder of a run's samples, for engine::measure(); empty where there are none. `task`
/// outlives it.
engine::Beside decoder_beside(const std::optional<SampleTask>& task);

/// Decoder of a run's samples: over the parameters of the run's engine, with caches in its arenas,
/// whatever the layout.
class Sampler {
 public:
  Sampler(SampleTask task, const engine::Engine& engine, const comm::AxisGroups& groups,
          device::Kernels& kernels, engine::Memory& memory);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  /// Collective over all ranks. What `trireme generate` would answer with these weights, on the
  /// first rank; nothing on the others. Changes nothing that training reads.
  std::vector<Answer> run();
  const SampleTask& task() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::inference
