// SPDX-License-Identifier: Apache-2.0
#include "csv.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include <algorithm>

namespace trireme::perf {
namespace {

std::vector<std::string> entries_of(std::string_view line) {
  std::vector<std::string> entries(1);
  bool in_quotes = false;
  for (std::size_t place = 0; place < line.size(); ++place) {
    const char letter = line[place];
    if (letter == '"') {
      const bool doubled = in_quotes && line.substr(place + 1, 1) == "\"";
      if (doubled) {
        entries.back() += letter;
        ++place;
      } else {
        in_quotes = !in_quotes;
      }
    } else if (letter == ',' && !in_quotes) {
      entries.emplace_back();
    } else if (letter != '\r') {
      entries.back() += letter;
    }
  }
  return entries;
}

}  // namespace

std::vector<CsvLine> read_csv(const std::filesystem::path& path,
                              std::span<const std::string_view> columns) {
  const auto text = base::value_or_throw(base::read_text_file(path, base::ExitCode::usage));
  std::vector<CsvLine> lines;
  std::vector<std::string> names;
  std::string_view rest = text;
  while (!rest.empty()) {
    const auto end = std::min(rest.find('\n'), rest.size());
    const auto entries = entries_of(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (names.empty()) {
      names = entries;
      continue;
    }
    auto& line = lines.emplace_back();
    for (std::size_t column = 0; column < names.size(); ++column) {
      line[names[column]] = column < entries.size() ? entries[column] : std::string();
    }
  }
  for (const auto column : columns) {
    if (std::find(names.begin(), names.end(), column) != names.end()) continue;
    throw base::Error(base::ExitCode::usage,
                      base::format("{} has no column '{}' (a prediction needs it); add it",
                                   path.string(), column));
  }
  return lines;
}

}  // namespace trireme::perf
