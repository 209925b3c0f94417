// SPDX-License-Identifier: Apache-2.0
#include "trireme/config/file.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/text.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/config/sources.hpp"
#include "trireme/schema/quoted.hpp"
#include "trireme/schema/text.hpp"

#include <boost/program_options/errors.hpp>
#include <boost/program_options/options_description.hpp>
#include <boost/program_options/parsers.hpp>

#include <algorithm>
#include <map>
#include <optional>
#include <sstream>

namespace trireme::config {
namespace {

namespace options = boost::program_options;
using base::format;

constexpr std::size_t max_file_bytes = std::size_t{1} << 20;
constexpr std::size_t max_lines = 20'000;
constexpr std::size_t max_depth = 16;
constexpr std::size_t max_files = 256;
/// Reading stops after so many mistakes: this is not a configuration file.
constexpr std::size_t max_mistakes = 20;

/// Result of Boost's parser for one line.
struct ParsedLine {
  /// Empty for blanks, comments and section headers.
  std::vector<options::option> found;
  /// The section that holds from the next line on.
  std::string section;
};

/// Boost parses streams and keeps no line numbers. Its format has no construct that spans lines
/// but the section, so each line is parsed by itself, after a header with the section so far and
/// before a probe whose full name tells which section holds then.
ParsedLine parse_line(const std::string& section, const std::string& line) {
  constexpr std::string_view probe = "probe";
  std::istringstream stream((section.empty() ? "" : "[" + section + "]\n") + line + "\n" +
                            std::string(probe) + "=");
  static const options::options_description any;
  auto parsed = options::parse_config_file(stream, any, true).options;
  std::string name = parsed.back().string_key;
  parsed.pop_back();
  name.resize(name.size() - probe.size());
  while (name.ends_with('.')) name.pop_back();
  return {std::move(parsed), std::move(name)};
}

/// Boost ends a line at every '#': those in quotes go by as a letter that no line has.
constexpr char hash_mark = '\x01';

std::string with_marks(std::string_view statement) {
  std::string marked(statement);
  std::replace(marked.begin(), marked.end(), '#', hash_mark);
  return marked;
}

std::string without_marks(std::string text) {
  std::replace(text.begin(), text.end(), hash_mark, '#');
  return text;
}

/// Language that other trainers write configurations in, if a line that cannot be read is of that:
/// "YAML", "JSON"; else null.
const char* other_language(const std::filesystem::path& path, std::string_view statement) {
  const auto extension = base::lower_case(path.extension().string());
  if (extension == ".json" || statement.starts_with('{')) return "JSON";
  if (extension == ".yaml" || extension == ".yml" || statement == "---") return "YAML";
  // "steps: 5", "train:", "- a".
  const auto name_end = statement.find_first_not_of(
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-");
  const bool member = name_end != 0 && name_end != std::string_view::npos &&
                      statement[name_end] == ':' &&
                      (name_end + 1 == statement.size() || statement[name_end + 1] == ' ');
  return member || statement.starts_with("- ") ? "YAML" : nullptr;
}

class Reader {
 public:
  void read(const std::filesystem::path& path, const std::string& cited_by);
  FileContents take() { return std::move(contents_); }

 private:
  /// State of the file that is being read.
  struct Open {
    std::filesystem::path path;
    std::string section;
    /// First line of each key, to tell repetitions.
    std::map<std::string, int> lines = {};
    /// True for a file that a run wrote, with the origin of each value as a comment behind it.
    bool keeps_origins = false;
    /// True for a file of another language: one mistake stands for all of its lines.
    bool abandoned = false;
  };

  void read_lines(Open& file, std::string_view text);
  void read_line(Open& file, const std::string& line, int number);
  std::optional<std::string_view> statement_of(std::string_view line, const std::string& place);
  void include(const Open& file, const std::string& text, const std::string& place);
  void accept(Open& file, const options::option& found, int number);
  void refuse_line(Open& file, std::string_view statement, const std::string& place);
  bool may_open(const std::filesystem::path& path, const std::string& cited_by);
  bool full() const { return contents_.mistakes.size() >= max_mistakes; }
  void mistake(std::string text) { contents_.mistakes.push_back(std::move(text)); }

  FileContents contents_;
  /// Files that are being read, outermost first, in canonical form: a cycle shows here.
  std::vector<std::filesystem::path> chain_;
  std::size_t opened_count_ = 0;
};

std::string shown(const std::filesystem::path& path) {
  return base::printable(path.string());
}

bool Reader::may_open(const std::filesystem::path& path, const std::string& cited_by) {
  std::error_code ignored;
  const auto canonical = std::filesystem::weakly_canonical(path, ignored);
  if (std::find(chain_.begin(), chain_.end(), canonical) != chain_.end()) {
    mistake(
        format("{}'{}' includes itself (the chain of files would never end); remove one "
               "include",
               cited_by, shown(path)));
    return false;
  }
  if (chain_.size() >= max_depth || ++opened_count_ > max_files) {
    mistake(
        format("{}'{}' is included too deep or too often (at most {} levels and {} files); "
               "flatten the includes",
               cited_by, shown(path), max_depth, max_files));
    return false;
  }
  chain_.push_back(canonical);
  return true;
}

void Reader::read(const std::filesystem::path& path, const std::string& cited_by) {
  if (!may_open(path, cited_by)) return;
  const auto text = base::read_text_file(path, base::ExitCode::usage, max_file_bytes);
  const auto problem = text ? base::not_text(*text) : std::nullopt;
  if (problem) {
    mistake(format(
        "{}{} {} (configuration files are text in UTF-8, a value a line); check the path, or "
        "{}",
        cited_by, shown(path), problem->fact, problem->fix));
  } else if (text) {
    Open file{.path = path, .section = {}, .keeps_origins = path.filename() == resolved_file_name};
    read_lines(file, *text);
  } else {
    mistake(format("{}{} (a configuration file must be readable); check the path", cited_by,
                   base::printable(text.failure().text)));
  }
  chain_.pop_back();
}

void Reader::read_lines(Open& file, std::string_view text) {
  if (text.starts_with(base::byte_order_mark)) text.remove_prefix(base::byte_order_mark.size());
  for (std::size_t number = 1; !text.empty() && !full() && !file.abandoned; ++number) {
    if (number > max_lines) {
      mistake(format("{}:{}: more than {} lines (no configuration is so long); check the path",
                     shown(file.path), number, max_lines));
      return;
    }
    const auto end = text.find('\n');
    read_line(file, std::string(text.substr(0, end)), static_cast<int>(number));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

/// The line without its comment; nothing, and a mistake, where it cannot be told what is one.
std::optional<std::string_view> Reader::statement_of(std::string_view line,
                                                     const std::string& place) {
  const auto end = schema::statement_end(line);
  const auto statement = base::trimmed(line.substr(0, end.at));
  if (end.has_open_quotes) {
    mistake(
        format("{}{} opens quotes that do not end (they could hold a comment or be closed before "
               "it); close them, or write \\\" for the letter in a text in quotes",
               place, schema::quoted_if_odd(statement)));
    return std::nullopt;
  }
  const auto equals = statement.find('=');
  const bool touches = end.at > 0 && end.at < line.size() && line[end.at - 1] != ' ' &&
                       line[end.at - 1] != '\t' && line[end.at - 1] != '=';
  if (touches && equals != std::string_view::npos) {
    const auto whole = base::trimmed(line.substr(line.find('=') + 1));
    mistake(format(
        "{}{} has a '#' right behind its value (it may belong to the value or begin a "
        "comment); write {}= {} for the one, and a blank before it for the other",
        place, schema::quoted_if_odd(line), statement.substr(0, equals), schema::quoted(whole)));
    return std::nullopt;
  }
  return statement;
}

void Reader::read_line(Open& file, const std::string& raw, int number) {
  const auto place = format("{}:{}: ", shown(file.path), number);
  const std::string line(base::trimmed(raw));
  const auto is_control = [](unsigned char letter) { return letter < 0x20 && letter != '\t'; };
  if (std::any_of(line.begin(), line.end(), is_control)) {
    mistake(
        format("{}'{}' is not text (configuration files are text, a value a line); check the "
               "path",
               place, base::printable(line.substr(0, 40))));
    return;
  }
  const auto statement_found = statement_of(line, place);
  if (!statement_found) return;
  const auto statement = *statement_found;
  // Boost would read before the start of the empty name.
  if (statement.starts_with('[') && statement.ends_with(']') &&
      base::trimmed(statement.substr(1, statement.size() - 2)).empty()) {
    mistake(format("{}'{}' names no section; write [section]", place, statement));
    return;
  }
  try {
    auto parsed = parse_line(file.section, with_marks(statement));
    file.section = std::move(parsed.section);
    for (const auto& found : parsed.found) {
      accept(file, found, number);
      if (!file.keeps_origins || contents_.assignments.empty()) continue;
      const auto comment = std::string_view(line).substr(schema::statement_end(line).at);
      contents_.assignments.back().recorded =
          base::trimmed(comment.substr(comment.empty() ? 0 : 1));
    }
  } catch (const options::error&) {
    refuse_line(file, statement, place);
  }
}

void Reader::refuse_line(Open& file, std::string_view statement, const std::string& place) {
  if (const auto* language = other_language(file.path, statement)) {
    mistake(
        format("{}{} looks like {} (a configuration file holds lines 'key = value' below lines "
               "'[section]'); write it so, as configs/*.conf do (trireme config reference lists "
               "the keys)",
               place, schema::quoted_if_odd(statement), language));
    file.abandoned = true;
    return;
  }
  if (statement.starts_with('[') && statement.size() > 1) {
    const auto name = base::trimmed(statement.substr(1, statement.find(']') - 1));
    mistake(format("{}{} is no section header (a name between two brackets); write [{}]", place,
                   schema::quoted_if_odd(statement), base::printable(name)));
    // The lines that follow are meant to stand in that section.
    file.section = name;
    return;
  }
  mistake(
      format("{}{} is neither 'key = value' nor '[section]' nor a comment (nothing else can "
             "stand in a configuration file); correct the line",
             place, schema::quoted_if_odd(statement)));
}

void Reader::include(const Open& file, const std::string& text, const std::string& place) {
  auto name = text;
  if (text.starts_with('"')) {
    const auto part = schema::read_quoted(text);
    name = part.ok() && part->size == text.size() ? part->text : "";
  }
  if (name.empty()) {
    mistake(place + "include names no file; write include = other.conf");
    return;
  }
  read(file.path.parent_path() / name, place);
}

void Reader::accept(Open& file, const options::option& found, int number) {
  const auto place = format("{}:{}: ", shown(file.path), number);
  const auto& name = found.string_key;
  const auto text = found.value.empty() ? std::string{} : without_marks(found.value.front());
  if (name == "include" || name.ends_with(".include")) {
    include(file, text, place);
    return;
  }
  const auto [first, is_new] = file.lines.emplace(name, number);
  if (!is_new) {
    mistake(
        format("{}{} is set for the second time (the first is line {}, and one of the two "
               "would be ignored); remove one",
               place, base::printable(name), first->second));
    return;
  }
  contents_.assignments.push_back({name, text, {Origin::Kind::file, shown(file.path), number}});
}

}  // namespace

FileContents read_file(const std::filesystem::path& path) {
  Reader reader;
  reader.read(path, "");
  return reader.take();
}

}  // namespace trireme::config
