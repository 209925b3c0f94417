// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/text/regex.hpp"

#define PCRE2_CODE_UNIT_WIDTH 8  // NOLINT: the library's way of choosing its width
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/handle.hpp"

#include <pcre2.h>

#include <array>

namespace trireme::data {
namespace {

struct CodeTraits {
  using raw_type = pcre2_code*;
  static raw_type null() { return nullptr; }
  static const char* name() { return "regular expression"; }
  static std::optional<std::string> close(raw_type raw) {
    pcre2_code_free(raw);
    return std::nullopt;
  }
};

struct MatchDataTraits {
  using raw_type = pcre2_match_data*;
  static raw_type null() { return nullptr; }
  static const char* name() { return "match data"; }
  static std::optional<std::string> close(raw_type raw) {
    pcre2_match_data_free(raw);
    return std::nullopt;
  }
};

struct MatchContextTraits {
  using raw_type = pcre2_match_context*;
  static raw_type null() { return nullptr; }
  static const char* name() { return "match context"; }
  static std::optional<std::string> close(raw_type raw) {
    pcre2_match_context_free(raw);
    return std::nullopt;
  }
};

struct JitStackTraits {
  using raw_type = pcre2_jit_stack*;
  static raw_type null() { return nullptr; }
  static const char* name() { return "matching stack"; }
  static std::optional<std::string> close(raw_type raw) {
    pcre2_jit_stack_free(raw);
    return std::nullopt;
  }
};

std::string message(int error) {
  std::array<PCRE2_UCHAR, 256> text{};
  pcre2_get_error_message(error, text.data(), text.size());
  return reinterpret_cast<const char*>(text.data());
}

template <typename Handle>
Handle require(Handle handle) {
  if (!handle) throw base::Error(base::ExitCode::internal, "PCRE2 is out of memory");
  return handle;
}

PCRE2_SPTR units(std::string_view text) {
  return reinterpret_cast<PCRE2_SPTR>(text.data());
}

}  // namespace

std::string regex_library_version() {
  std::array<char, 64> text{};
  // The number of characters with the end; the longest version so far has 20.
  const auto length = pcre2_config(PCRE2_CONFIG_VERSION, nullptr);
  if (length <= 0 || static_cast<std::size_t>(length) > text.size()) return "unknown";
  pcre2_config(PCRE2_CONFIG_VERSION, text.data());
  return text.data();
}

struct Regex::Code {
  base::UniqueHandle<CodeTraits> handle;
};

base::Result<Regex> Regex::compile(const std::string& pattern) {
  return compile_with(pattern, PCRE2_UTF | PCRE2_UCP);
}

base::Result<Regex> Regex::compile_bytes(const std::string& pattern) {
  return compile_with(pattern, PCRE2_MULTILINE);
}

base::Result<Regex> Regex::compile_with(const std::string& pattern, std::uint32_t options) {
  int error = 0;
  std::size_t offset = 0;
  auto handle = base::UniqueHandle<CodeTraits>::adopt(
      pcre2_compile(units(pattern), pattern.size(), options, &error, &offset, nullptr));
  if (!handle) {
    return base::usage_failure(base::format("'{}' is no regular expression: {} at byte {}", pattern,
                                            message(error), offset));
  }
  // Failure is ignored: without just-in-time code, matching is interpreted, slower with the same
  // result.
  pcre2_jit_compile(handle.get(), PCRE2_JIT_COMPLETE);
  return Regex(std::make_shared<const Code>(Code{std::move(handle)}));
}

bool Regex::matches_empty() const {
  std::uint32_t answer = 0;
  pcre2_pattern_info(code_->handle.get(), PCRE2_INFO_MATCHEMPTY, &answer);
  return answer != 0;
}

struct Matcher::State {
  base::UniqueHandle<MatchDataTraits> data;
  base::UniqueHandle<JitStackTraits> stack;
  base::UniqueHandle<MatchContextTraits> context;  // destroyed first: it points at the stack
};

Matcher::Matcher(Regex regex) : regex_(std::move(regex)), state_(std::make_unique<State>()) {
  using Data = base::UniqueHandle<MatchDataTraits>;
  using Context = base::UniqueHandle<MatchContextTraits>;
  using Stack = base::UniqueHandle<JitStackTraits>;
  constexpr std::size_t first_stack_bytes = std::size_t{32} << 10;
  constexpr std::size_t most_stack_bytes = std::size_t{8} << 20;
  state_->data = require(Data::adopt(pcre2_match_data_create(1, nullptr)));
  state_->context = require(Context::adopt(pcre2_match_context_create(nullptr)));
  state_->stack =
      Stack::adopt(pcre2_jit_stack_create(first_stack_bytes, most_stack_bytes, nullptr));
  if (state_->stack) {
    pcre2_jit_stack_assign(state_->context.get(), nullptr, state_->stack.get());
  }
}

Matcher::Matcher(Matcher&&) noexcept = default;
Matcher& Matcher::operator=(Matcher&&) noexcept = default;
Matcher::~Matcher() = default;

std::optional<Matcher::Match> Matcher::find(std::string_view text, std::size_t from) {
  const int found = pcre2_match(regex_.code_->handle.get(), units(text), text.size(), from,
                                PCRE2_NO_UTF_CHECK, state_->data.get(), state_->context.get());
  if (found == PCRE2_ERROR_NOMATCH) return std::nullopt;
  if (found < 0) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("a regular expression cannot read this text: {}; split it into "
                                   "smaller documents",
                                   message(found)));
  }
  const auto* bounds = pcre2_get_ovector_pointer(state_->data.get());
  return Match{bounds[0], bounds[1]};
}

}  // namespace trireme::data
