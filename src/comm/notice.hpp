#pragma once

#include "board.hpp"
#include "cut_text.hpp"

#include <array>
#include <cstring>

namespace trireme::comm {

/// A verdict as one small message of plain bytes.
struct Notice {
  std::int32_t culprit = -1;
  std::array<char, 64> host{};
  std::array<char, 512> cause{};

  Notice() = default;
  explicit Notice(const Board::Verdict& verdict) : culprit(verdict.culprit.value()) {
    put(host, verdict.host);
    put(cause, verdict.cause);
  }
  Board::Verdict verdict() const { return {base::Rank(culprit), get(host), get(cause)}; }

 private:
  template <std::size_t N>
  static void put(std::array<char, N>& place, const std::string& text) {
    const auto cut = cut_text(text, N - 1);
    std::memcpy(place.data(), cut.data(), cut.size());
  }
  template <std::size_t N>
  static std::string get(const std::array<char, N>& place) {
    return {place.data(), ::strnlen(place.data(), N)};
  }
};

}  // namespace trireme::comm
