// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/dataset.hpp"
#include "trireme/engine/engine.hpp"

#include <cstdint>
#include <future>
#include <span>
#include <vector>

namespace trireme::engine {

/// Numbers of a dataset's samples: as training draws them (TokenDataset::sample), or of a whole
/// pass (TokenDataset::sample_of_pass).
enum class SampleOrder { drawn, whole_pass };

/// Samples of a rank's micro-batches of one step, as far as it reads them.
struct StepSamples {
  std::uint64_t first = 0;  ///< number of the rank's first one
  /// Targets of the step over all ranks that are not left out.
  std::int64_t counted = 0;
  std::vector<std::int32_t> tokens;   ///< [sequences, sequence_length], or empty
  std::vector<std::int32_t> targets;  ///< [sequences, sequence_length], or empty
};

/// Puts samples of a dataset into the micro-batches of an engine. Sample `cursor + i` of a step
/// goes to the same place of the global batch whatever the layout.
class BatchLoader {
 public:
  /// `dataset` and `engine` outlive this.
  BatchLoader(const data::TokenDataset& dataset, Engine& engine,
              SampleOrder order = SampleOrder::drawn);

  /// Reads what the rank needs of a step into `samples`, whose memory is used again; `cursor` is
  /// the number of the step's first sample. Samples beyond `end` are left out of the loss (targets
  /// below zero). For any thread. Throws base::Error (checkpoint) for tokens that are none of the
  /// model's.
  void read(std::uint64_t cursor, std::uint64_t end, StepSamples& samples) const;
  /// Fills every micro-batch of the rank, and says how many targets there are.
  void put(const StepSamples& samples) const;
  /// Both at once.
  void fill(std::uint64_t cursor, std::uint64_t end = UINT64_MAX);

 private:
  void read_sample(std::uint64_t number, std::uint64_t end, std::span<std::int32_t> sample) const;

  const data::TokenDataset& dataset_;
  Engine& engine_;
  SampleOrder order_;
  SampleParts parts_;
  StepSamples samples_;
};

/// Reads the samples of a step on a thread of its own while the step before is computed. What was
/// read and is not asked for is forgotten: positions in the data are the caller's.
class ReadAhead {
 public:
  /// As BatchLoader's.
  ReadAhead(const data::TokenDataset& dataset, Engine& engine) : loader_(dataset, engine) {}
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  /// Waits for the thread.
  ~ReadAhead() = default;

  /// Begins to read the step with this first sample.
  void start(std::uint64_t cursor);
  /// Fills every micro-batch of the rank: with what is read already if it is this step. Throws what
  /// reading it has thrown.
  void fill(std::uint64_t cursor);

 private:
  BatchLoader loader_;
  std::uint64_t cursor_ = 0;
  StepSamples spare_;
  /// Valid from start() to the next fill(). Waits where it ends; destroyed before what it reads
  /// with.
  std::future<StepSamples> under_way_;
};

/// Samples of a step, over all data-parallel ranks.
std::int64_t global_batch(const EngineOptions& options);

}  // namespace trireme::engine
