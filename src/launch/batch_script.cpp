// SPDX-License-Identifier: Apache-2.0
// The #SBATCH lines of a batch script.
#include "trireme/launch/resource_request.hpp"

#include "text.hpp"

namespace trireme::launch {
namespace {

/// Splits a line into words as sbatch does: quotes and backslashes keep blanks, '#' begins a
/// comment.
void add_words(std::string_view line, std::vector<std::string>& words) {
  std::string word;
  bool inside = false;
  char quote = '\0';
  for (std::size_t index = 0; index < line.size(); ++index) {
    const char letter = line[index];
    if (quote != '\0') {
      if (letter == quote) {
        quote = '\0';
      } else {
        word += letter;
      }
    } else if (letter == '\'' || letter == '"') {
      quote = letter;
      inside = true;
    } else if (letter == '\\' && index + 1 < line.size()) {
      word += line[++index];
      inside = true;
    } else if (letter == ' ' || letter == '\t' || letter == '\r') {
      if (inside) words.push_back(std::move(word));
      word.clear();
      inside = false;
    } else if (letter == '#' && !inside) {
      break;
    } else {
      word += letter;
      inside = true;
    }
  }
  if (inside) words.push_back(std::move(word));
}

}  // namespace

std::vector<std::string> batch_words(std::string_view script) {
  constexpr std::string_view mark = "#SBATCH";
  constexpr std::size_t most_words = 10'000;
  std::vector<std::string> words;
  while (!script.empty() && words.size() < most_words) {
    const auto end = script.find('\n');
    const auto line = script.substr(0, end);
    script.remove_prefix(end == std::string_view::npos ? script.size() : end + 1);
    if (line.starts_with(mark)) {
      const auto rest = line.substr(mark.size());
      // "#SBATCH hetjob" begins another component, whose options are not this one's.
      if (const auto what = trimmed(rest); what == "hetjob" || what == "packjob") {
        words.emplace_back(":");
        continue;
      }
      if (!rest.empty() && (rest.front() == ' ' || rest.front() == '\t')) add_words(rest, words);
      continue;
    }
    const auto text = trimmed(line);
    if (!text.empty() && text.front() != '#') break;
  }
  return words;
}

}  // namespace trireme::launch
