// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/data/dataset.hpp"
#include "trireme/engine/engine.hpp"
#include "trireme/layout/flat.hpp"

#include <cstdint>
#include <functional>
#include <memory>
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
  std::vector<std::int32_t> tokens;      ///< [sequences, rank_tokens], or empty
  std::vector<std::int32_t> targets;     ///< [sequences, rank_tokens], or empty
  std::vector<std::int32_t> first_keys;  ///< [sequences, rank_tokens], or empty
};

/// Reads what a rank needs of a dataset's samples. Sample `cursor + i` of a step goes to the same
/// place of the global batch whatever the layout.
class SampleReader {
 public:
  /// `dataset` outlives this, `engine` need not.
  SampleReader(const data::TokenDataset& dataset, const Engine& engine,
               SampleOrder order = SampleOrder::drawn);

  /// Reads a step into `samples`, whose memory is used again; `cursor` is the number of its first
  /// sample. Samples beyond `end` are left out of the loss (targets below zero). For any thread.
  /// Throws base::Error (checkpoint) for tokens that are none of the model's.
  void read(std::uint64_t cursor, std::uint64_t end, StepSamples& samples) const;

 private:
  void read_sample(std::uint64_t number, std::uint64_t end, std::span<std::int32_t> sample) const;
  void read_starts(std::uint64_t number, std::uint64_t end, std::span<std::int32_t> starts) const;
  /// Puts the rank's tokens of what begins at `first` in a sample into place `sequence`.
  void put_runs(const std::int32_t* first, std::int64_t sequence,
                std::vector<std::int32_t>& values) const;

  const data::TokenDataset& dataset_;
  SampleOrder order_;
  SampleParts parts_;
  std::int64_t sequence_length_;
  /// Tokens of each sequence that the rank has: context-parallel ranks read the same samples.
  std::vector<layout::FlatRange> runs_;
  std::int64_t rank_tokens_;
  std::int64_t sequences_;  ///< of the rank
  std::uint64_t first_;     ///< of the rank, in a step
  std::uint64_t global_batch_;
};

/// Puts samples of a dataset into the micro-batches of an engine.
class BatchLoader {
 public:
  /// `dataset` and `engine` outlive this.
  BatchLoader(const data::TokenDataset& dataset, Engine& engine,
              SampleOrder order = SampleOrder::drawn)
      : engine_(engine), reader_(dataset, engine, order) {}

  /// As SampleReader::read() has them. Fills every micro-batch of the rank, and says how many
  /// targets there are.
  void fill(std::uint64_t cursor, std::uint64_t end = UINT64_MAX);

 private:
  Engine& engine_;
  SampleReader reader_;
  StepSamples samples_;
};

/// Reads the samples of a step on a thread of its own while the step before is computed. What was
/// read and is not asked for is forgotten: positions in the data are the caller's.
class ReadAhead {
 public:
  /// Reads the rank's part of the step with this first sample, on any thread. Keeps what it reads
  /// with.
  using Read = std::function<void(std::uint64_t cursor, StepSamples& samples)>;

  /// As BatchLoader's.
  ReadAhead(std::shared_ptr<const data::TokenDataset> dataset, Engine& engine);
  ReadAhead(Engine& engine, Read read);
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  /// Waits for the thread, unless storage holds it up.
  ~ReadAhead();

  /// Begins to read the step with this first sample; where no thread can be started, fill() does.
  void start(std::uint64_t cursor);
  /// Fills every micro-batch of the rank: with what is read already if it is this step. Throws what
  /// reading it has thrown.
  void fill(std::uint64_t cursor);

 private:
  struct State;
  Engine& engine_;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::engine
