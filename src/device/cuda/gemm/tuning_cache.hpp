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

/// What cuBLASLt calls cublasLtMatmulAlgo_t, opaque.
using Algorithm = std::array<std::uint64_t, 8>;

/// The place of the fastest of several ways. Each is run `rounds` times, in turns, so that a clock
/// that changes meets all alike, and its fastest run counts. Ways that throw base::Error are out.
/// Among those within a fiftieth of the fastest the first wins: timing noise should not decide.
/// -1: all are out.
int fastest(std::size_t ways, const std::function<double(std::size_t way)>& seconds, int rounds);

/// Which algorithm computes which product on one kind of card.
class ProductChoices {
 public:
  /// `target` names all that an algorithm depends on but the product: card, library, workspace.
  explicit ProductChoices(std::string target) : target_(std::move(target)) {}

  /// Null: nothing is chosen.
  const Algorithm* find(const std::string& product) const;
  /// Unless something is chosen.
  void add(const std::string& product, const Algorithm& algorithm);
  void clear();
  std::size_t size() const { return chosen_.size(); }

  /// {"format": "trireme products 1", "target": .., "digest": "..",
  /// "products": {"..": "128 hexadecimal digits"}}.
  std::string text() const { return text_of(chosen_); }
  /// The same list of what add() has added, since the last adopt().
  std::string news() const { return text_of(added_); }
  /// Forgets what news() would tell, then takes all texts; a failure of one does not keep it from
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
  /// Those of chosen_ that add() has put there.
  Chosen added_;
};

}  // namespace trireme::device::cuda
