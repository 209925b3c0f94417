// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_cublaslt/problem.hpp"

#include <vector>

namespace trireme::testing::cublaslt {

/// How a product is computed.
enum class Way : std::uint32_t {
  unusable,    ///< in the heuristics' results, with a status that says so
  slow,        ///< as plain, a while later: the heuristics' first usable, which timing passes over
  breaks,      ///< offered, and then cublasLtMatmul fails
  vectorised,  ///< all addresses and columns are multiples of 16 bytes
  rounded,     ///< sums in halves that are rounded to the result's type before they meet
  split,       ///< sums in halves that meet in the workspace
  plain,
  greedy,  ///< needs more workspace than anybody gives; offered to who promises that much
};

/// cublasLtMatmulAlgo_t: whose product it is for, and what it may rely on.
struct Record {
  std::uint64_t mark = 0;
  std::uint64_t problem = 0;
  /// Workspace of one matrix.
  std::uint64_t workspace_bytes = 0;
  Way way = Way::plain;
  /// Alignments that addresses were promised to have.
  std::uint16_t alignment_a = 1;
  std::uint16_t alignment_b = 1;
  std::uint16_t alignment_c = 1;
  std::uint16_t alignment_d = 1;
  std::uint16_t alignment_bias = 1;
  std::uint16_t alignment_aux = 1;
  /// Digest of all before it.
  std::uint64_t digest = 0;
};

/// Ways for a described product, best first as the heuristics see it. Empty: the preferences allow
/// none.
std::vector<Record> ways_for(const Problem& problem, const Preference& preference);

/// False where nothing of ours lies there, or something changed it.
bool read(const cublasLtMatmulAlgo_t* from, Record& to);
/// Each matrix has a workspace of its own.
cublasLtMatmulHeuristicResult_t result_of(const Record& record, std::size_t matrices);

/// The way was made for this product.
cublasStatus_t judge(const Record& record, const Problem& problem);

}  // namespace trireme::testing::cublaslt
