#include "trireme/base/json.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

namespace trireme::base {
namespace {

constexpr int max_nesting = 128;

/// Nesting is bounded before the recursive parser sees the text: its stack is not ours to lose.
bool nests_too_deeply(std::string_view text) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char letter = text[at];
    if (in_string) {
      if (letter == '\\') ++at;
      if (letter == '"') in_string = false;
    } else if (letter == '"') {
      in_string = true;
    } else if (letter == '{' || letter == '[') {
      if (++depth > max_nesting) return true;
    } else if (letter == '}' || letter == ']') {
      --depth;
    }
  }
  return false;
}

}  // namespace

Result<Json> parse_json(std::string_view text, std::string_view source, ExitCode code) {
  if (nests_too_deeply(text)) {
    return Failure{code, format("{}: JSON nests deeper than {} levels", source, max_nesting)};
  }
  try {
    return Json::parse(text);
  } catch (const Json::parse_error& error) {
    return Failure{code, format("{}: not valid JSON at byte {}: {}", source, error.byte,
                                error.what())};
  }
}

Result<Json> read_json_file(const std::filesystem::path& path, ExitCode code,
                            std::size_t max_bytes) {
  auto text = read_text_file(path, code, max_bytes);
  if (!text) return text.failure();
  return parse_json(*text, path.string(), code);
}

}  // namespace trireme::base
