// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include <array>
#include <charconv>
#include <cmath>

namespace trireme::base {
namespace {

template <typename Float>
std::string shortest(Float value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value > 0 ? "inf" : "-inf";
  std::array<char, 64> buffer{};
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), value).ptr;
  return {buffer.data(), end};
}

}  // namespace

std::string number_text(float value) {
  return shortest(value);
}
std::string number_text(double value) {
  return shortest(value);
}

std::string fixed_text(double value, int digits) {
  return std::isnan(value) ? "nan" : format("{:.{}f}", value, digits);
}

std::string count_text(double count) {
  if (count < 1e3) return format("{:.0f}", count);
  if (count < 1e6) return format("{:.1f} thousand", count / 1e3);
  if (count < 1e9) return format("{:.1f} million", count / 1e6);
  return format("{:.2f} billion", count / 1e9);
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array<const char*, 6> units{"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
  double amount = static_cast<double>(bytes);
  std::size_t unit = 0;
  while (amount >= 1024.0 && unit + 1 < units.size()) {
    amount /= 1024.0;
    ++unit;
  }
  return unit == 0 ? format("{} B", bytes) : format("{:.2f} {}", amount, units[unit]);
}

std::string duration_text(double seconds) {
  if (seconds <= 0.0) return "0 s";
  if (seconds < 1e-3) return format("{:.0f} us", seconds * 1e6);
  if (seconds < 1.0) return format("{:.1f} ms", seconds * 1e3);
  if (seconds < 60.0) return format("{:.1f} s", seconds);
  const auto total = static_cast<std::uint64_t>(std::llround(seconds));
  if (total < 3600) return format("{} min {} s", total / 60, total % 60);
  return format("{} h {} min", total / 3600, total % 3600 / 60);
}

}  // namespace trireme::base
