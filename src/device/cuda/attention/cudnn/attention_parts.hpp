// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "device/cuda/attention/cudnn/attention_graph.hpp"

#include <cstddef>
#include <cstdint>
#include <vector>

namespace trireme::device::cudnn {

/// Bytes of the parts of one backward run's workspace, in this order, each a multiple of 256.
struct BackwardBytes {
  /// Sums of dk and of dv over several runs, f32; zero where a run has all of their terms.
  std::size_t key_sums = 0;
  /// Terms of dk and of dv of one run.
  std::size_t key_terms = 0;
  /// Log-sum-exps of the run, where they are not contiguous.
  std::size_t lse = 0;
  std::size_t row_sums = 0;
  /// Sums of dq; `fastest` alone has them.
  std::size_t dq_sums = 0;
  /// Bytes of workspace that the library may ask for.
  std::size_t library = 0;

  std::size_t before_library() const {
    return 2 * (key_sums + key_terms) + lse + row_sums + dq_sums;
  }
  std::size_t total() const { return before_library() + library; }
};

/// Part of a backward that one run takes.
struct BackwardPart {
  std::int64_t first_sequence = 0;
  std::int64_t sequences = 0;
  std::int64_t first_kv_head = 0;
  std::int64_t kv_heads = 0;
  /// Query heads [first_of_group, first_of_group + of_group) of those that share each key head.
  std::int64_t first_of_group = 0;
  std::int64_t of_group = 0;
  std::int64_t first_query = 0;
  std::int64_t queries = 0;
  /// Keys that its queries see: [0, keys).
  std::int64_t keys = 0;
  /// Share of the terms of dk and dv of its key heads: all, or some, with the rest in parts that
  /// follow one another.
  enum class Terms { all, some };
  Terms terms = Terms::all;

  bool operator==(const BackwardPart&) const = default;
};

/// Division of a backward into runs whose workspace has a bound.
class BackwardParts {
 public:
  /// Runs of sequences, then of the heads of one sequence; what one key head needs is cut into its
  /// query heads and blocks of their queries, 128 at least.
  BackwardParts(const AttentionExtents& whole, AttentionBits bits, std::size_t most_bytes);

  const std::vector<BackwardPart>& list() const { return list_; }
  /// Workspace of every run.
  std::size_t workspace_bytes() const { return workspace_bytes_; }

 private:
  void cut_heads(std::int64_t sequences);
  void cut_queries();
  /// Part with as many queries of one head as the bound allows.
  BackwardPart largest_block() const;
  std::int64_t group() const { return whole_.heads() / whole_.kv_heads(); }
  BackwardBytes bytes(const BackwardPart& part) const;

  AttentionExtents whole_;
  AttentionBits bits_;
  std::size_t most_bytes_;
  std::vector<BackwardPart> list_;
  std::size_t workspace_bytes_ = 0;
};

BackwardBytes backward_bytes(const AttentionExtents& whole, const BackwardPart& part,
                             AttentionBits bits);

}  // namespace trireme::device::cudnn
