// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/failure.hpp"

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/base/utf8.hpp"
#include "trireme/runtime/run_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>

namespace trireme::runtime {
namespace {

std::string text_of(const base::Json& json) {
  return base::json_text(json, 2) + "\n";
}

base::Json to_json(const comm::RankFailure& failure, const std::string& log_file) {
  base::Json json;
  json["cause"] = failure.cause;
  json["exit_code"] = static_cast<int>(failure.code);
  json["first_failing_rank"] = failure.first.value();
  if (failure.first_task >= 0) json["first_failing_task"] = failure.first_task;
  json["host"] = failure.host;
  json["collective"] = nullptr;
  if (!failure.absence.operation.empty()) {
    base::Json collective;
    collective["operation"] = failure.absence.operation;
    collective["group"] = failure.absence.group;
    collective["number"] = failure.absence.number;
    collective["missing_ranks"] = base::Json::array();
    for (const auto rank : failure.absence.ranks) {
      collective["missing_ranks"].push_back(rank.value());
    }
    if (!failure.absence.account.empty()) collective["account"] = failure.absence.account;
    json["collective"] = collective;
  }
  json["log"] = log_file.empty() ? base::Json(nullptr) : base::Json(log_file);
  json["time"] = base::utc_text();
  return json;
}

}  // namespace

std::filesystem::path rank_log(const std::filesystem::path& run, base::Rank rank) {
  return run / "log" / base::format("r{:04}.txt", rank.value());
}

std::string last_line(const comm::RankFailure& failure, const std::string& log_file) {
  auto cause = failure.cause;
  std::replace(cause.begin(), cause.end(), '\n', ' ');
  auto rank = base::format("{}", failure.first.value());
  if (failure.first_task >= 0 && failure.first_task != failure.first.value()) {
    rank += base::format(" (task {})", failure.first_task);
  }
  const auto alike =
      failure.failed_count > 1 ? base::format("; {} ranks failed alike", failure.failed_count) : "";
  return base::repaired_utf8(
      base::format("trireme: failed with exit code {}: {}{}; first failing rank {} on {}; log: {}",
                   static_cast<int>(failure.code), cause, alike, rank, failure.host,
                   log_file.empty() ? "stderr" : log_file));
}

namespace {

constexpr std::size_t kept_room_bytes = std::size_t{16} << 10;

std::filesystem::path kept_room(const std::filesystem::path& run_directory) {
  return run_directory / ".room-for-failure";
}

/// True if the file was written by a rank that had only been notified of this one's failure.
bool is_hearsay(const std::filesystem::path& path, const comm::RankFailure& failure) {
  if (base::log::settings().identity.rank != failure.first.value()) return false;
  const auto written = base::read_json_file(path);
  if (!written.ok() || written->value("first_failing_rank", -1) != failure.first.value()) {
    return false;
  }
  // Bytes that are no UTF-8 were replaced in the file, and the notification may have been cut.
  const auto own = base::Json::parse(text_of(failure.cause)).get<std::string>();
  const auto cause = written->value("cause", std::string{});
  return !cause.empty() && own.starts_with(cause);
}

/// Writes a complete file under a name of its own, then links it: link() refuses when another rank
/// was first.
void write_once(const std::string& text, const std::filesystem::path& path,
                const comm::RankFailure& failure) {
  const auto& host = base::log::settings().identity.node;
  const auto own = path.string() + base::format(".{}.{}", host, ::getpid());
  try {
    const auto file =
        base::value_or_throw(base::open_file(own, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC));
    base::write_at(file, std::as_bytes(std::span(text)), 0, own);
  } catch (...) {
    ::unlink(own.c_str());
    throw;
  }
  // Peers are notified of a failure before it is written: they may be first, with an exit code of
  // their own.
  if (::link(own.c_str(), path.c_str()) != 0 && errno == EEXIST && is_hearsay(path, failure) &&
      ::rename(own.c_str(), path.c_str()) == 0) {
    return;
  }
  ::unlink(own.c_str());
}

}  // namespace

void keep_room_for_failure(const std::filesystem::path& run_directory) {
  const auto path = kept_room(run_directory);
  const auto file = base::open_file(path, O_WRONLY | O_CREAT | O_CLOEXEC);
  // Reserve: on a full disk only the text on stderr and in the logs would be left otherwise.
  if (!file.ok() || ::posix_fallocate(file->get(), 0, kept_room_bytes) != 0) {
    base::log::local::warning("runtime", "no room is kept for failure.json in '{}'",
                              run_directory.string());
  }
}

void write_failure(const comm::RankFailure& failure, const FailureReport& report) {
  const auto path = report.run_directory / "failure.json";
  const auto text = text_of(to_json(failure, report.log_file));
  try {
    write_once(text, path, failure);
    return;
  } catch (const std::exception&) {
    ::unlink(kept_room(report.run_directory).c_str());
  }
  try {
    write_once(text, path, failure);
  } catch (const std::exception& error) {
    base::log::local::warning("runtime", "cannot write '{}': {}", path.string(), error.what());
  }
}

namespace {

std::int64_t milliseconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// failure.json of a start that began then; none of an earlier one.
std::optional<base::Json> failure_since(const std::filesystem::path& path,
                                        std::chrono::system_clock::time_point began) {
  auto failure = base::read_json_file(path);
  if (!failure.ok() || !failure->is_object()) return std::nullopt;
  const auto noted = base::utc_milliseconds(failure->value("time", std::string{}));
  if (!noted || *noted < milliseconds_of(began)) return std::nullopt;
  return *std::move(failure);
}

/// True if the run is another start's, which writes its own failure.
bool is_held_since_before(const std::filesystem::path& run,
                          std::chrono::system_clock::time_point began) {
  const auto holder = living_holder(run);
  const auto since = holder ? base::utc_milliseconds(holder->since) : std::nullopt;
  return since && *since < milliseconds_of(began);
}

/// A failure that no rank has lived to report: which one was first is not known.
base::Json unsaid_failure(const std::string& end) {
  base::Json json;
  json["cause"] = base::format("a rank was ended by {}, and no rank said why", end);
  json["exit_code"] = static_cast<int>(base::ExitCode::peer);
  json["collective"] = nullptr;
  json["log"] = nullptr;
  json["time"] = base::utc_text();
  return json;
}

}  // namespace

void note_end_of_task(const std::filesystem::path& run_directory, const std::string& end,
                      std::chrono::system_clock::time_point began) {
  const auto path = run_directory / "failure.json";
  std::error_code ignored;
  // None of a start whose ranks ended before they had made it.
  if (!std::filesystem::is_directory(run_directory, ignored)) return;
  auto failure = failure_since(path, began);
  if (!failure) {
    if (is_held_since_before(run_directory, began)) return;
    put_failure_aside(run_directory);
    failure = unsaid_failure(end);
  }
  (*failure)["end_of_task"] = end;
  try {
    base::write_file_durably(path, text_of(*failure));
  } catch (const std::exception& error) {
    base::log::local::warning("runtime", "cannot write '{}': {}", path.string(), error.what());
  }
}

void put_failure_aside(const std::filesystem::path& run_directory) {
  constexpr int most_kept = 100;
  const auto path = run_directory / "failure.json";
  std::error_code error;
  if (run_directory.empty() || !std::filesystem::exists(path, error)) return;
  for (int number = 1; number <= most_kept; ++number) {
    const auto aside = run_directory / base::format("failure-{}.json", number);
    if (number < most_kept && std::filesystem::exists(aside, error)) continue;
    std::filesystem::rename(path, aside, error);
    return;
  }
}

void report_failures(comm::MpiRuntime& mpi, FailureReport report) {
  mpi.on_failure([report = std::move(report)](const comm::RankFailure& failure) mutable {
    std::error_code ignored;
    if (!std::filesystem::exists(report.log_file, ignored)) report.log_file.clear();
    const bool speaks =
        failure.voice == comm::Voice::every_rank || base::log::settings().identity.rank == 0;
    const bool writes =
        failure.voice == comm::Voice::every_rank ? failure.is_first_of_node : speaks;
    if (writes && !report.run_directory.empty()) write_failure(failure, report);
    const auto line = last_line(failure, report.log_file) + "\n";
    if (speaks) std::fputs(line.c_str(), stderr);
  });
}

void report_failures_of_command(comm::MpiRuntime& mpi) {
  mpi.on_failure([](const comm::RankFailure& failure) {
    const bool is_agreed = failure.voice == comm::Voice::first_rank;
    if (is_agreed && base::log::settings().identity.rank != 0) return;
    const auto line =
        is_agreed ? base::repaired_utf8("trireme: " + failure.text) : last_line(failure, {});
    std::fputs((line + "\n").c_str(), stderr);
  });
}

}  // namespace trireme::runtime
