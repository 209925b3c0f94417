// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/counted.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include "log_line.hpp"
#include "start_lines.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <ctime>
#include <limits>

namespace trireme::postmortem {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t longest_tail = std::size_t{4} << 20;
/// Bytes of all logs together, and the least of each: of 10,000 ranks some 50 KiB each.
constexpr std::size_t all_tails = std::size_t{512} << 20;
constexpr std::size_t shortest_tail = std::size_t{16} << 10;
constexpr std::size_t most_files = 100'000;
/// Mark of the line with which a rank's log begins at each start (Trainer::say_where).
constexpr std::string_view start_mark = " is task ";
constexpr std::string_view job_mark = " in job ";

bool is_rank_log(const fs::path& path) {
  const auto name = path.filename().string();
  return name.size() >= 6 && name[0] == 'r' && name.ends_with(".txt") &&
         std::all_of(name.begin() + 1, name.end() - 4,
                     [](char letter) { return letter >= '0' && letter <= '9'; });
}

/// Files that are read, and how.
struct Reading {
  std::size_t tail = longest_tail;  ///< bytes of a file's end
  std::size_t cut_files = 0;        ///< those that are longer
};

/// The end of a file, from the beginning of a line.
std::string read_tail(const fs::path& path, Reading& reading, std::vector<std::string>& notes) {
  const auto file = base::open_file(path, O_RDONLY | O_CLOEXEC);
  struct stat facts {};
  if (!file.ok() || ::fstat(file->get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    notes.push_back(base::format("cannot read '{}'", path.string()));
    return {};
  }
  const auto size = static_cast<std::size_t>(facts.st_size);
  const auto begin = size > reading.tail ? size - reading.tail : 0;
  std::string text(size - begin, '\0');
  try {
    base::read_at(*file, std::as_writable_bytes(std::span(text)), begin, path);
  } catch (const std::exception& error) {
    notes.emplace_back(error.what());
    return {};
  }
  if (begin == 0) return text;
  ++reading.cut_files;
  const auto line_break = text.find('\n');
  return line_break == std::string::npos ? std::string{} : text.substr(line_break + 1);
}

bool is_start(const LogLine& line) {
  return line.room == "runtime" && line.text.starts_with("rank ") &&
         line.text.find(start_mark) != std::string::npos;
}

/// Ascending by rank.
std::vector<fs::path> rank_logs(const fs::path& run) {
  std::vector<fs::path> files;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run / "log", error)) {
    if (is_rank_log(entry.path()) && files.size() < most_files) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Drops logs of ranks that a later start with fewer ranks does not have.
void drop_absent_ranks(std::vector<LogLine>& lines) {
  const auto first = std::find_if(lines.begin(), lines.end(), [](const LogLine& line) {
    return line.rank == 0 && is_start(line);
  });
  if (first == lines.end()) return;
  std::erase_if(lines,
                [ranks = first->world_size](const LogLine& line) { return line.rank >= ranks; });
}

/// Times at which rank 0, which is there in every start, began one: as its clock said, and moved
/// behind all lines of the start before, though the clock was set back between them.
struct StartTime {
  std::int64_t time_ms = 0;
  std::int64_t moved_ms = 0;
};

std::vector<StartTime> start_times(const std::vector<LogLine>& lines_of_first_rank) {
  std::vector<StartTime> starts;
  std::int64_t latest_ms = std::numeric_limits<std::int64_t>::min();
  std::int64_t moved_ms = 0;
  for (const auto& line : lines_of_first_rank) {
    if (is_start(line)) {
      if (line.time_ms + moved_ms < latest_ms) moved_ms = latest_ms - line.time_ms;
      starts.push_back({line.time_ms, moved_ms});
    }
    latest_ms = std::max(latest_ms, line.time_ms + moved_ms);
  }
  return starts;
}

/// Gives lines of a rank their place among those of all: starts as they followed each other on rank
/// 0, and in a start the order of lines. A clock that is set back in a start holds its lines until
/// it has caught up: which of two nodes had the right time is not known.
void keep_order(std::vector<LogLine>& lines, const std::vector<StartTime>& starts) {
  std::int64_t moved_ms = 0;
  std::int64_t latest_ms = std::numeric_limits<std::int64_t>::min();
  for (auto& line : lines) {
    if (is_start(line) && !starts.empty()) {
      const auto nearest = std::min_element(
          starts.begin(), starts.end(), [&line](const StartTime& one, const StartTime& other) {
            return std::abs(one.time_ms - line.time_ms) < std::abs(other.time_ms - line.time_ms);
          });
      moved_ms = nearest->moved_ms;
    }
    latest_ms = std::max(latest_ms, line.time_ms + moved_ms);
    line.order_ms = latest_ms;
  }
}

std::vector<LogLine> read_file(const fs::path& path, Attempts attempts, Reading& reading,
                               std::vector<std::string>& notes) {
  const auto text = read_tail(path, reading, notes);
  std::vector<LogLine> lines;
  for (std::string_view rest = text; !rest.empty();) {
    const auto end = rest.find('\n');
    const auto one = rest.substr(0, end);
    rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
    if (auto line = parse_log_line(one); line.ok()) {
      if (attempts == Attempts::last && is_start(*line)) lines.clear();
      lines.push_back(std::move(line).value());
    } else if (!lines.empty() && lines.back().text.size() + one.size() < longest_text) {
      // A message of several lines.
      lines.back().text += "\n";
      lines.back().text += one;
    }
  }
  return lines;
}

}  // namespace

std::vector<LogLine> read_logs(const fs::path& run, Attempts attempts,
                               std::vector<std::string>& notes) {
  const auto files = rank_logs(run);
  Reading reading;
  reading.tail =
      std::clamp(all_tails / std::max<std::size_t>(files.size(), 1), shortest_tail, longest_tail);
  std::vector<LogLine> all;
  std::vector<StartTime> starts;
  for (const auto& file : files) {
    auto lines = read_file(file, attempts, reading, notes);
    if (!lines.empty() && lines.front().rank == 0) starts = start_times(lines);
    keep_order(lines, starts);
    all.insert(all.end(), std::make_move_iterator(lines.begin()),
               std::make_move_iterator(lines.end()));
  }
  if (reading.cut_files > 0) {
    notes.push_back(base::format("of {} in '{}' only the last {} are read",
                                 base::counted(static_cast<std::int64_t>(reading.cut_files), "log"),
                                 (run / "log").string(), base::bytes_text(reading.tail)));
  }
  std::stable_sort(all.begin(), all.end(), [](const LogLine& one, const LogLine& other) {
    return one.order_ms < other.order_ms;
  });
  if (attempts == Attempts::last) drop_absent_ranks(all);
  return all;
}

bool ran_outside_jobs(const std::vector<LogLine>& lines) {
  const auto has_job = [](const LogLine& line) {
    return line.text.find(job_mark) != std::string::npos;
  };
  return std::any_of(lines.begin(), lines.end(), is_start) &&
         std::none_of(lines.begin(), lines.end(),
                      [&](const LogLine& line) { return is_start(line) && has_job(line); });
}

std::string job_of(const std::vector<LogLine>& lines) {
  for (const auto& line : lines) {
    const auto found = is_start(line) ? line.text.find(job_mark) : std::string::npos;
    if (found == std::string::npos) continue;
    const auto begin = found + job_mark.size();
    return line.text.substr(begin, line.text.find_first_not_of("0123456789.", begin) - begin);
  }
  return {};
}

std::map<int, int> ranks_of_tasks(const std::vector<LogLine>& lines) {
  std::map<int, int> ranks;
  for (const auto& line : lines) {
    const auto found = is_start(line) ? line.text.find(start_mark) : std::string::npos;
    if (found == std::string::npos) continue;
    const auto* const end = line.text.data() + line.text.size();
    int task = 0;
    const auto parsed = std::from_chars(line.text.data() + found + start_mark.size(), end, task);
    if (parsed.ec == std::errc{}) ranks.emplace(task, line.rank);
  }
  return ranks;
}

std::string job_of_run(const fs::path& run) {
  std::vector<std::string> ignored;
  Reading reading;
  // The first log that has a start tells; the others belong to the same one, or to an earlier.
  for (const auto& file : rank_logs(run)) {
    const auto lines = read_file(file, Attempts::last, reading, ignored);
    if (std::any_of(lines.begin(), lines.end(), is_start)) return job_of(lines);
  }
  return {};
}

std::string utc_text(std::int64_t time_ms) {
  const auto seconds = static_cast<time_t>(time_ms / 1000);
  tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  const auto length = std::strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S", &parts);
  return base::format("{}.{:03}", std::string_view(text, length), time_ms % 1000);
}

}  // namespace trireme::postmortem
