// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

namespace trireme::data {

/// A compiled regular expression (PCRE2 with just-in-time code). Copies share the code; several
/// threads may use it, each through a Matcher of its own.
class Regex {
 public:
  /// PCRE2's own syntax, over well-formed UTF-8.
  static base::Result<Regex> compile(const std::string& pattern);
  /// PCRE2's own syntax over any bytes; ^ and $ hold at lines.
  static base::Result<Regex> compile_bytes(const std::string& pattern);
  /// A pattern written for Oniguruma, as tokenizer.json holds them. Only what both libraries read
  /// alike is accepted; the rest is refused by name.
  static base::Result<Regex> compile_oniguruma(std::string_view pattern);

  /// True when it can match without reading a character.
  bool matches_empty() const;

 private:
  friend class Matcher;
  struct Code;
  explicit Regex(std::shared_ptr<const Code> code) : code_(std::move(code)) {}
  static base::Result<Regex> compile_with(const std::string& pattern, std::uint32_t options);

  std::shared_ptr<const Code> code_;
};

/// PCRE2's text for an Oniguruma pattern: \s, \p{L} and \p{N} mean what they mean there.
base::Result<std::string> translate_oniguruma(std::string_view pattern);

/// Version and date of PCRE2 as it runs.
std::string regex_library_version();

/// Matching state of one thread.
class Matcher {
 public:
  explicit Matcher(Regex regex);
  Matcher(const Matcher&) = delete;
  Matcher& operator=(const Matcher&) = delete;
  Matcher(Matcher&&) noexcept;
  Matcher& operator=(Matcher&&) noexcept;
  ~Matcher();

  struct Match {
    std::size_t begin;
    std::size_t end;
  };
  /// The first match at or after byte `from`. Throws base::Error when the
  /// expression exceeds PCRE2's limits.
  std::optional<Match> find(std::string_view text, std::size_t from);

 private:
  struct State;
  Regex regex_;
  std::unique_ptr<State> state_;
};

}  // namespace trireme::data
