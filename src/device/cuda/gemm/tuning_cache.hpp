// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>

namespace trireme::device::cuda {

/// Opaque copy of a cublasLtMatmulAlgo_t.
using Algorithm = std::array<std::uint64_t, 8>;

/// Index of the fastest candidate. Each is run `rounds` times, in turns, so that a clock that
/// changes meets all alike, and its fastest run counts. Candidates that throw base::Error are out.
/// Among those within a fiftieth of the fastest the first wins: timing noise should not decide.
/// -1: all are out.
int fastest(std::size_t candidates, const std::function<double(std::size_t candidate)>& seconds,
            int rounds);

/// Algorithms that autotuning has chosen, by GEMM, for one kind of GPU.
class TuningCache {
 public:
  /// `target` names all that an algorithm depends on but the GEMM: GPU, library, workspace.
  explicit TuningCache(std::string target) : target_(std::move(target)) {}

  /// Algorithm of a GEMM; null: nothing is chosen.
  const Algorithm* find(const std::string& gemm) const;
  /// Adds an algorithm, unless one is chosen.
  void add(const std::string& gemm, const Algorithm& algorithm);
  void clear();
  std::size_t size() const { return chosen_.size(); }

  /// Cache as JSON: {"format": "trireme products 1", "target": .., "digest": "..",
  /// "products": {"..": "128 hexadecimal digits"}}.
  std::string text() const { return text_of(chosen_); }
  /// List of what add() has added, since the last adopt().
  std::string news() const { return text_of(added_); }
  /// Empties the list of news(), then takes all texts; a failure of one does not keep it from
  /// taking the others.
  base::Status adopt(std::span<const std::string> texts);
  /// Takes what is not chosen yet. Texts for other targets are passed over. On a failure (no such
  /// text, too many entries, an algorithm of another length) nothing is taken.
  base::Status merge(std::string_view text);

 private:
  using Chosen = std::map<std::string, Algorithm>;
  std::string text_of(const Chosen& chosen) const;

  std::string target_;
  Chosen chosen_;
  /// Entries of chosen_ that add() has put there.
  Chosen added_;
};

}  // namespace trireme::device::cuda
