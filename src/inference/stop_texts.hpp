// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::inference {

/// Texts that end an answer and are no part of it.
class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  bool empty() const { return texts_.empty(); }
  /// Whether one of them ends in what stands from `first_new` on.
  bool found(std::string_view answer, std::size_t first_new) const;
  /// Bytes of an answer before the first of them; all where there is none.
  std::size_t cut(std::string_view answer) const;
  /// Bytes that stay whatever follows: what may be the beginning of a stop text is held back.
  std::size_t settled(std::string_view answer) const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace trireme::inference
