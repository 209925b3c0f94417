// SPDX-License-Identifier: Apache-2.0
#include "data/tokenizer/text/normalizer.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "data/tokenizer/text/unicode.hpp"

#include <utf8proc.h>

#include <algorithm>
#include <cstdlib>
#include <memory>
#include <vector>

namespace trireme::data {
namespace {

/// First byte of U+0300, the first combining mark. No character below it composes with a preceding
/// one, so text whose bytes are all smaller is in NFC.
constexpr unsigned char first_combining_lead = 0xCC;

bool may_combine(char byte) {
  return static_cast<unsigned char>(byte) >= first_combining_lead;
}

struct Release {
  void operator()(utf8proc_uint8_t* memory) const { std::free(memory); }  // NOLINT: a C library's
};

/// Text in which every run of combining marks is in canonical order. utf8proc sorts marks one swap
/// at a time, which would take hours for a long run in the wrong order; sorted runs cost it
/// nothing.
std::string with_sorted_marks(std::string_view text) {
  struct Mark {
    std::string_view bytes;
    int combining_class;
  };
  std::vector<Mark> run;
  std::string out;
  const auto end_run = [&] {
    std::stable_sort(run.begin(), run.end(), [](const Mark& a, const Mark& b) {
      return a.combining_class < b.combining_class;
    });
    for (const auto& mark : run) out.append(mark.bytes);
    run.clear();
  };
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, bytes] = code_point_at(text, at);
    const int combining_class =
        utf8proc_get_property(static_cast<utf8proc_int32_t>(value))->combining_class;
    if (combining_class == 0) {
      end_run();
      out.append(text.substr(at, bytes));
    } else {
      run.push_back({text.substr(at, bytes), combining_class});
    }
    at += bytes;
  }
  end_run();
  return out;
}

void append_composed(std::string_view text, std::string& out) {
  if (text.empty()) return;
  constexpr std::size_t short_bytes = 256;
  std::string sorted;
  if (text.size() > short_bytes) {
    sorted = with_sorted_marks(text);
    text = sorted;
  }
  utf8proc_uint8_t* raw = nullptr;
  const auto size =
      utf8proc_map(reinterpret_cast<const utf8proc_uint8_t*>(text.data()),
                   static_cast<utf8proc_ssize_t>(text.size()), &raw,
                   static_cast<utf8proc_option_t>(UTF8PROC_STABLE | UTF8PROC_COMPOSE));
  const std::unique_ptr<utf8proc_uint8_t, Release> memory(raw);
  if (size < 0) {
    throw base::Error(base::ExitCode::internal,
                      base::format("cannot normalise text: {}", utf8proc_errmsg(size)));
  }
  out.append(reinterpret_cast<const char*>(raw), static_cast<std::size_t>(size));
}

/// Characters that are copied, and across which nothing combines.
bool stands_alone(char32_t value) {
  // utf8proc 2.8 treats U+11A7, a vowel that composes with nothing, as trailing consonant number
  // zero, and drops it after an open Hangul syllable.
  return value == 0x11A7 || contains(combining_since_unicode_9(), value);
}

/// Text whose first character combines with nothing before it.
void append_stretch(std::string_view text, std::string& out) {
  std::size_t begin = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [value, bytes] = code_point_at(text, at);
    if (stands_alone(value)) {
      append_composed(text.substr(begin, at - begin), out);
      out.append(text.substr(at, bytes));
      begin = at + bytes;
    }
    at += bytes;
  }
  append_composed(text.substr(begin), out);
}

}  // namespace

std::string_view to_nfc(std::string_view text, std::string& storage) {
  std::size_t at = 0;
  while (at < text.size() && !may_combine(text[at])) ++at;
  if (at == text.size()) return text;
  storage.clear();
  storage.reserve(text.size() + 16);
  std::size_t done = 0;
  while (at < text.size()) {
    // The character before a combining one may compose with it.
    auto begin = at;
    if (begin > done) begin -= code_point_before(text, begin).bytes;
    storage.append(text.substr(done, begin - done));
    auto end = at;
    while (end < text.size() && may_combine(text[end])) end += code_point_at(text, end).bytes;
    append_stretch(text.substr(begin, end - begin), storage);
    done = end;
    at = end;
    while (at < text.size() && !may_combine(text[at])) ++at;
  }
  storage.append(text.substr(done));
  return storage;
}

}  // namespace trireme::data
