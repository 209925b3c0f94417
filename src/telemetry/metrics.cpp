// SPDX-License-Identifier: Apache-2.0
#include "trireme/telemetry/metrics.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <fstream>

namespace trireme::telemetry {
namespace {

constexpr auto storage = base::ExitCode::checkpoint;

void write_line(const base::File& file, std::string_view line, const std::filesystem::path& path) {
  while (!line.empty()) {
    const auto count = ::write(file.get(), line.data(), line.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) {
      base::throw_errno(storage, base::format("cannot append to '{}'", path.string()), errno);
    }
    line.remove_prefix(static_cast<std::size_t>(count));
  }
}

}  // namespace

base::Result<MetricsFile> MetricsFile::open(const std::filesystem::path& path) {
  auto file = base::open_file(path, O_RDWR | O_CREAT | O_APPEND, 0644, storage);
  if (!file) return file.failure();
  struct stat facts {};
  if (::fstat(file->get(), &facts) == 0 && facts.st_size > 0) {
    char last = '\n';
    if (::pread(file->get(), &last, 1, facts.st_size - 1) == 1 && last != '\n') {
      write_line(*file, "\n", path);
    }
  }
  return MetricsFile(std::move(file).value(), path);
}

void MetricsFile::append(const base::Json& line) {
  // Until the line stands, its end is missing.
  const auto text = base::format("{}{}\n", torn_ ? "\n" : "", base::json_text(line));
  torn_ = true;
  write_line(file_, text, path_);
  torn_ = false;
}

std::int64_t start_count(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::int64_t count = 0;
  while (std::getline(file, line)) {
    if (line.find("\"event\":\"start\"") != std::string::npos) ++count;
  }
  return count;
}

namespace {

std::int64_t step_of(const std::string& line) {
  const auto json = base::Json::parse(line, nullptr, false);
  const auto found = json.is_object() ? json.find("step") : json.end();
  return found != json.end() && found->is_number_integer() ? found->get<std::int64_t>() : 0;
}

/// False of a line that a crash has cut off, behind an object within it too. Lines are not parsed
/// where their braces pair: a record has millions.
bool is_whole(const std::string& line) {
  if (!line.ends_with('}')) return false;
  const auto opened = std::count(line.begin(), line.end(), '{');
  return opened == std::count(line.begin(), line.end(), '}') || base::Json::accept(line);
}

}  // namespace

RecordedSteps recorded_steps(const std::filesystem::path& path) {
  std::ifstream file(path);
  std::string line;
  std::string step;
  std::string save;
  while (std::getline(file, line)) {
    if (!is_whole(line)) continue;
    if (line.find("\"event\":\"start\"") != std::string::npos && step_of(line) == 1) {
      step.clear();
      save.clear();
    }
    if (line.find("\"kind\":\"train\"") != std::string::npos) step.swap(line);
    if (line.find("\"kind\":\"save\"") != std::string::npos &&
        line.find("\"tier\":\"nodes\"") == std::string::npos) {
      save.swap(line);
    }
  }
  return {step_of(step), step_of(save)};
}

}  // namespace trireme::telemetry
