// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/contract.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/device/kernels.hpp"

#include <cstdint>
#include <cstring>

namespace trireme::device {

/// The numbers behind a dropout mask. Element (row, column) of a global matrix of `width` columns
/// has number index = row * width + column; it takes lane index % 4 of philox counter index / 4
/// and is kept when that lane's uniform number is at least the rate. Four neighbours of a row
/// share a counter, and no layout changes the number of an element.
class DropoutMask {
 public:
  explicit DropoutMask(const Dropout& dropout)
      : rate_(dropout.rate),
        kept_factor_(1.0F / (1.0F - dropout.rate)),
        seed_(dropout.seed),
        stream_(dropout.stream) {}

  bool active() const { return rate_ > 0.0F; }
  float rate() const { return rate_; }
  float kept_factor() const { return kept_factor_; }
  std::uint64_t seed() const { return seed_; }
  std::uint64_t stream() const { return stream_; }

  /// 0, or 1 / (1 - rate): what the element with this number is multiplied by.
  float factor(std::int64_t index) const {
    const auto number = static_cast<std::uint64_t>(index);
    const auto bits = base::philox(seed_, stream_, number / 4)[number % 4];
    return base::uniform_from_bits(bits) >= rate_ ? kept_factor_ : 0.0F;
  }

  /// Factors of `count` neighbours from `index` on.
  void factors(std::int64_t index, std::int64_t count, float* out) const {
    auto number = static_cast<std::uint64_t>(index);
    const auto end = number + static_cast<std::uint64_t>(count);
    while (number < end) {
      const auto bits = base::philox(seed_, stream_, number / 4);
      do {
        *out++ = base::uniform_from_bits(bits[number % 4]) >= rate_ ? kept_factor_ : 0.0F;
      } while (++number < end && number % 4 != 0);
    }
  }

 private:
  float rate_;
  float kept_factor_;
  std::uint64_t seed_;
  std::uint64_t stream_;
};

/// Number of the first element of row `row` of a rank's tensor under this mask.
inline std::int64_t dropout_index(const Dropout& dropout, std::int64_t row) {
  std::int64_t base = 0;
  if (dropout.row_base) std::memcpy(&base, dropout.row_base.i32(), sizeof base);
  return (base + dropout.first_row + row) * dropout.width + dropout.first_column;
}

/// Number of key 0 in the scores of one query: the global matrix has a row for every (sequence,
/// head, query) and a column for every key of whole sequences. Queries are the last of the keys.
inline std::int64_t attention_dropout_index(const Attention& attention, std::int64_t sequence,
                                            std::int64_t head, std::int64_t query) {
  const auto global_head = dropout_index(attention.dropout, sequence) + head;
  const auto position = attention.k.dim(1) - attention.q.dim(1) + query;
  return (global_head * attention.whole_length() + position) * attention.whole_length();
}

}  // namespace trireme::device
