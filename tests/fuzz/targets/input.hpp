// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <string>
#include <string_view>
#include <vector>

/// Inputs that fuzzers make of their bytes. Seeds are texts that people can read.
namespace trireme::fuzz {

inline std::string_view text_of(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

inline std::vector<std::string> lines_of(std::string_view text) {
  std::vector<std::string> lines;
  while (!text.empty()) {
    const auto end = text.find('\n');
    lines.emplace_back(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
  return lines;
}

/// NAME=value of each line. \x1F in a value stands for a line break in it.
inline base::Environment environment_of(std::string_view text) {
  std::map<std::string, std::string, std::less<>> variables;
  for (const auto& line : lines_of(text)) {
    const auto equals = line.find('=');
    if (equals == std::string::npos) continue;
    auto value = line.substr(equals + 1);
    for (auto& letter : value) letter = letter == '\x1F' ? '\n' : letter;
    variables.insert_or_assign(line.substr(0, equals), value);
  }
  return base::Environment(std::move(variables));
}

/// Takes what stands before a line that is "--", and that line, off the front.
inline std::string_view take_part(std::string_view& text) {
  constexpr std::string_view mark = "\n--\n";
  const auto end = text.find(mark);
  const auto part = text.substr(0, end);
  text.remove_prefix(end == std::string_view::npos ? text.size() : end + mark.size());
  return part;
}

/// A condition that must hold whatever the input is; the fuzzer keeps the input that breaks it.
inline void must(bool holds, const char* sentence) {
  if (holds) return;
  std::fprintf(stderr, "broken: %s\n", sentence);
  std::abort();
}

}  // namespace trireme::fuzz
