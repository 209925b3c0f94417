// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/telemetry/run_record.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include <algorithm>

namespace trireme::telemetry {
namespace {

constexpr std::size_t block_bytes = std::size_t{1} << 18;
constexpr std::size_t longest_line = std::size_t{1} << 20;
/// Some forty steps.
constexpr std::uint64_t end_bytes = std::uint64_t{16} << 10;

}  // namespace

void RecordReader::take(std::string_view block) {
  while (!block.empty()) {
    const auto end = block.find('\n');
    const auto part = block.substr(0, end);
    if (!skips_line_ && begun_.size() + part.size() > longest_line) {
      ++record_.passed_over;
      begun_.clear();
      skips_line_ = true;
    }
    if (end == std::string_view::npos) {
      if (!skips_line_) begun_ += part;
      return;
    }
    if (!skips_line_) record_.take(begun_.empty() ? part : begun_ += part);
    begun_.clear();
    skips_line_ = false;
    block.remove_prefix(end + 1);
  }
}

void RecordReader::forget_steps(std::int64_t last) {
  forgotten_ = last;
  record_.forget_steps(last);
}

base::Status RecordReader::advance() {
  const auto file = base::open_file(path_, O_RDONLY | O_NONBLOCK);
  if (!file.ok()) {
    std::error_code error;
    if (!std::filesystem::exists(path_, error) && !error) return {};
    return file.failure();
  }
  struct stat facts {};
  if (::fstat(file->get(), &facts) != 0 || !S_ISREG(facts.st_mode)) {
    return base::usage_failure(base::format("'{}' is no regular file", path_.string()));
  }
  const auto size = static_cast<std::uint64_t>(facts.st_size);
  if (facts.st_ino != inode_ || size < offset_) {
    record_ = {};
    begun_.clear();
    forgotten_ = 0;
    inode_ = facts.st_ino;
    offset_ = from_ == From::end && size > end_bytes ? size - end_bytes : 0;
    // Text before the first end of a line is the rest of one.
    skips_line_ = offset_ > 0;
  }
  std::string block;
  while (offset_ < size) {
    block.resize(std::min<std::uint64_t>(block_bytes, size - offset_));
    try {
      base::read_at(*file, std::as_writable_bytes(std::span(block)), offset_, path_);
    } catch (const base::Error& error) {
      return base::Failure{error.code(), error.what()};
    }
    offset_ += block.size();
    take(block);
    record_.forget_steps(forgotten_);
    if (record_.steps.size() > RunRecord::most_steps) {
      return base::usage_failure(
          base::format("'{}' has more than {} steps (all of them are kept in memory); "
                       "cut its oldest lines off in a copy",
                       path_.string(), RunRecord::most_steps));
    }
  }
  return {};
}

std::filesystem::path record_of_run(const std::filesystem::path& run) {
  return run / "metrics.jsonl";
}

base::Result<RunRecord> read_record(const std::filesystem::path& run) {
  RecordReader reader(record_of_run(run));
  if (auto read = reader.advance(); !read.ok()) return read.failure();
  return std::move(reader).take_record();
}

}  // namespace trireme::telemetry
