// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"
#include "trireme/base/text.hpp"

#include <array>
#include <cstring>
#include <string>

namespace trireme::comm {

/// Cause of a failed run, as the first rank that detects it sends it to all others.
struct FailureCause {
  base::Rank rank;
  std::string host;
  std::string text;
};

/// Message of plain bytes with a FailureCause; longer texts are truncated.
struct FailureMessage {
  std::int32_t rank = -1;
  std::array<char, 64> host{};
  std::array<char, 512> text{};

  FailureMessage() = default;
  explicit FailureMessage(const FailureCause& cause) : rank(cause.rank.value()) {
    put(host, cause.host);
    put(text, cause.text);
  }
  FailureCause cause() const { return {base::Rank(rank), get(host), get(text)}; }

 private:
  template <std::size_t N>
  static void put(std::array<char, N>& field, const std::string& value) {
    const auto cut = base::cut_utf8(value, N - 1);
    std::memcpy(field.data(), cut.data(), cut.size());
  }
  template <std::size_t N>
  static std::string get(const std::array<char, N>& field) {
    return {field.data(), ::strnlen(field.data(), N)};
  }
};

}  // namespace trireme::comm
