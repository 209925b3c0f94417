// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layers/stage.hpp"

#include <cstdint>
#include <memory>
#include <span>

namespace trireme::layers {

/// New tokens of one sequence in one step of decoding: rows [first_row, first_row + count) of the
/// step stand at positions first_position… of the sequence whose keys and values `slot` holds.
struct SequencePart {
  int slot = 0;
  std::int64_t first_position = 0;
  std::int64_t first_row = 0;
  std::int64_t count = 0;
};

/// The layers of one stage, run forward over new tokens alone: keys and values of earlier ones
/// are kept. The sequences of a step may be of any lengths, and at any positions.
class DecoderStage {
 public:
  /// Room of a cache: sequences at once, and positions of each.
  struct Capacity {
    int slots = 1;
    std::int64_t positions = 1;
  };

  /// The cache lies in `cache`. Of the context, micro_batch and sequence_length are not looked at;
  /// sequence parallelism must be off.
  DecoderStage(const StageContext& context, const model::StageParameters& stage,
               const Chunk::Role& role, const Capacity& capacity, device::Arena& cache,
               device::Arena& constants);
  ~DecoderStage();
  DecoderStage(const DecoderStage&) = delete;
  DecoderStage& operator=(const DecoderStage&) = delete;

  /// tokens: i32 [rows], looked at by the first stage alone; hidden: [rows, hidden], the input of
  /// the first layer (unless this is the first stage) and then the output of the last.
  void run(std::span<const SequencePart> parts, const device::Tensor& tokens,
           const device::Tensor& hidden);

  /// Logits; for the last stage alone. hidden: [rows, hidden] as run() left it; logits: [rows,
  /// local vocabulary], f32 or the compute type.
  void logits(const device::Tensor& hidden, const device::Tensor& logits);
  std::int64_t local_vocabulary() const;

 private:
  struct Parts;
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::layers
