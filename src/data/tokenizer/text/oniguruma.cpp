// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/format.hpp"

#include "data/tokenizer/text/regex.hpp"
#include "data/tokenizer/text/unicode.hpp"

namespace trireme::data {
namespace {

using base::format;

std::string ranges_text(std::span<const CodeRange> ranges) {
  std::string text;
  for (const auto& range : ranges)
    text += format("\\x{{{:X}}}-\\x{{{:X}}}", range.first, range.last);
  return text;
}

/// Class members for a property of Unicode 16.
std::string members_of(std::string_view property) {
  if (property == "L") return "\\p{L}" + ranges_text(letters_since_unicode_14());
  if (property == "N") return "\\p{N}" + ranges_text(numbers_since_unicode_14());
  return {};
}

/// Translator of a pattern that copies the syntax common to both libraries.
class Translation {
 public:
  explicit Translation(std::string_view pattern) : rest_(pattern), whole_(pattern) {}

  base::Result<std::string> run() {
    while (!rest_.empty() && problem_.empty()) step();
    if (problem_.empty() && in_class_) problem_ = "a class without its end";
    if (problem_.empty()) return std::move(out_);
    return base::Failure{
        base::ExitCode::checkpoint,
        format("the pattern '{}' holds {}, which PCRE2 may read differently than Oniguruma "
               "(guessing would give other tokens); use a tokenizer whose pattern is made of "
               "\\s, \\p{{L}}, \\p{{N}}, classes, groups, look-ahead and repetition",
               whole_, problem_)};
  }

 private:
  void step() {
    if (rest_.front() == '\\') {
      escape();
    } else if (in_class_) {
      class_member();
    } else if (rest_.front() == '(') {
      group();
    } else if (rest_.front() == '[') {
      in_class_ = true;
      take(rest_.substr(0, 2) == "[^" ? 2 : 1);
      if (rest_.substr(0, 1) == "]") problem_ = "a class that begins with ']'";
    } else if (rest_.front() == '^' || rest_.front() == '$' || rest_.front() == '.') {
      problem_ = format("'{}'", rest_.front());
    } else if (rest_.starts_with("}+")) {
      problem_ = "'}+'";  // possessive in PCRE2, a repetition of a repetition in Oniguruma
    } else {
      take(1);
    }
  }

  void class_member() {
    if (rest_.front() == '[' || rest_.substr(0, 2) == "&&") {
      problem_ = "a class inside a class";
      return;
    }
    if (rest_.front() == ']') in_class_ = false;
    take(1);
  }

  void group() {
    for (const std::string_view opening : {"(?:", "(?i:", "(?!", "(?="}) {
      if (rest_.starts_with(opening)) {
        take(opening.size());
        return;
      }
    }
    if (rest_.substr(0, 2) == "(?") {
      problem_ = format("the group '{}'", rest_.substr(0, 4));
    } else {
      take(1);
    }
  }

  void escape() {
    const char kind = rest_.size() > 1 ? rest_[1] : '\0';
    if (kind == 's' || kind == 'S') {
      // PCRE2's own \s includes U+180E, which lost the property White_Space in Unicode 6.3.
      replace(2, kind == 's' ? "\\p{White_Space}" : "\\P{White_Space}");
    } else if (kind == 'p' && rest_.substr(2, 1) == "{") {
      property();
    } else if (kind == 'r' || kind == 'n' || kind == 't' ||
               (kind > ' ' && !is_alphanumeric(kind))) {
      take(2);
    } else {
      problem_ = format("'{}'", rest_.substr(0, 2));
    }
  }

  void property() {
    const auto end = rest_.find('}');
    const auto name = rest_.substr(3, end == std::string_view::npos ? end : end - 3);
    const auto members = members_of(name);
    if (end == std::string_view::npos || members.empty()) {
      problem_ = format("\\p{{{}}}", name);
      return;
    }
    replace(end + 1, in_class_ ? members : "[" + members + "]");
  }

  static bool is_alphanumeric(char letter) {
    return (letter >= '0' && letter <= '9') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= 'a' && letter <= 'z');
  }

  void take(std::size_t count) { replace(count, std::string(rest_.substr(0, count))); }
  void replace(std::size_t count, const std::string& with) {
    out_ += with;
    rest_.remove_prefix(count);
  }

  std::string_view rest_;
  std::string_view whole_;
  std::string out_;
  std::string problem_;
  bool in_class_ = false;
};

}  // namespace

base::Result<std::string> translate_oniguruma(std::string_view pattern) {
  return Translation(pattern).run();
}

base::Result<Regex> Regex::compile_oniguruma(std::string_view pattern) {
  auto translated = translate_oniguruma(pattern);
  if (!translated) return translated.failure();
  return compile(*translated);
}

}  // namespace trireme::data
