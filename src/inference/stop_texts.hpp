// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::inference {

/// Texts that end an answer and are left out of it.
class StopTexts {
 public:
  explicit StopTexts(std::vector<std::string> texts) : texts_(std::move(texts)) {}

  bool empty() const { return texts_.empty(); }
  /// True if one of them ends at or after byte `first_new`.
  bool found(std::string_view answer, std::size_t first_new) const;
  /// Bytes of an answer before the first of them; all where there is none.
  std::size_t cut(std::string_view answer) const;
  /// Number of bytes that are final: a possible beginning of a stop text is held back.
  std::size_t settled(std::string_view answer) const;

 private:
  std::vector<std::string> texts_;
};

}  // namespace trireme::inference
