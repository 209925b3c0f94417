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
/// A step's line may stand so far before the end: lines of samples are long.
constexpr std::uint64_t most_end_bytes = std::uint64_t{4} << 20;

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
  if (facts.st_ino == inode_ && size >= offset_) return read_to(*file, size);
  inode_ = facts.st_ino;
  forgotten_ = 0;
  for (auto last_bytes = end_bytes;; last_bytes *= 2) {
    const bool reads_all = from_ == From::begin || size <= last_bytes;
    begin_at(reads_all ? 0 : size - last_bytes);
    auto status = read_to(*file, size);
    const bool is_enough = reads_all || !record_.steps.empty() || last_bytes >= most_end_bytes;
    if (!status.ok() || is_enough) return status;
  }
}

void RecordReader::begin_at(std::uint64_t offset) {
  record_ = {};
  begun_.clear();
  offset_ = offset;
  // Text before the first end of a line is the rest of one.
  skips_line_ = offset > 0;
}

base::Status RecordReader::read_to(const base::File& file, std::uint64_t size) {
  std::string block;
  while (offset_ < size) {
    block.resize(std::min<std::uint64_t>(block_bytes, size - offset_));
    try {
      base::read_at(file, std::as_writable_bytes(std::span(block)), offset_, path_);
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
