// SPDX-License-Identifier: Apache-2.0
#include "trireme/record/failure.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utc.hpp"
#include "trireme/record/run_lock.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

namespace trireme::record {
namespace {

constexpr std::size_t kept_room_bytes = std::size_t{16} << 10;
constexpr int most_put_aside = 100;

std::string file_text(const base::Json& json) {
  return base::json_text(json, 2) + "\n";
}

base::Json to_json(const FailedOperation& operation) {
  base::Json json;
  json["operation"] = operation.operation;
  json["group"] = operation.group;
  json["number"] = operation.number;
  json["missing_ranks"] = operation.missing_ranks;
  if (!operation.account.empty()) json["account"] = operation.account;
  return json;
}

base::Json to_json(const Failure& failure) {
  base::Json json;
  json["cause"] = failure.cause;
  json["exit_code"] = failure.exit_code ? base::Json(*failure.exit_code) : base::Json(nullptr);
  if (failure.first_rank) json["first_failing_rank"] = *failure.first_rank;
  if (failure.first_task) json["first_failing_task"] = *failure.first_task;
  if (failure.first_rank) json["host"] = failure.host;
  json["collective"] = failure.collective ? to_json(*failure.collective) : base::Json(nullptr);
  json["log"] = failure.log.empty() ? base::Json(nullptr) : base::Json(failure.log);
  json["time"] = base::utc_text();
  return json;
}

std::filesystem::path kept_room(const std::filesystem::path& run) {
  return run / ".room-for-failure";
}

std::filesystem::path put_aside(const std::filesystem::path& run, int number) {
  return run / base::format("failure-{}.json", number);
}

/// True if the file was written by a rank that had only been notified of this one's failure.
bool is_hearsay(const std::filesystem::path& path, const Failure& failure) {
  if (base::log::settings().identity.rank != failure.first_rank) return false;
  const auto written = base::read_json_file(path);
  if (!written.ok() || written->value("first_failing_rank", -1) != failure.first_rank) {
    return false;
  }
  // Bytes that are no UTF-8 were replaced in the file, and the notification may have been cut.
  const auto own = base::Json::parse(file_text(failure.cause)).get<std::string>();
  const auto cause = written->value("cause", std::string{});
  return !cause.empty() && own.starts_with(cause);
}

/// Writes a complete file under a name of its own, then links it: link() refuses when another rank
/// was first.
void write_once(const std::string& text, const std::filesystem::path& path,
                const Failure& failure) {
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

std::int64_t milliseconds_of(std::chrono::system_clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::milliseconds>(time.time_since_epoch()).count();
}

/// True if the run is another start's, which writes its own failure.
bool is_held_since_before(const std::filesystem::path& run,
                          std::chrono::system_clock::time_point began) {
  const auto holder = living_holder(run);
  const auto since = holder ? base::utc_milliseconds(holder->since) : std::nullopt;
  return since && *since < milliseconds_of(began);
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

/// A failure that no rank has lived to report: which one was first is not known.
Failure unsaid_failure(const std::string& end) {
  Failure failure;
  failure.cause = base::format("a rank was ended by {}, and no rank said why", end);
  failure.exit_code = static_cast<int>(base::ExitCode::peer);
  return failure;
}

}  // namespace

std::filesystem::path failure_of_run(const std::filesystem::path& run) {
  return run / "failure.json";
}

std::filesystem::path rank_log(const std::filesystem::path& run, base::Rank rank) {
  return run / "log" / base::format("r{:04}.txt", rank.value());
}

void keep_room_for_failure(const std::filesystem::path& run) {
  const auto path = kept_room(run);
  const auto file = base::open_file(path, O_WRONLY | O_CREAT | O_CLOEXEC);
  // Reserve: on a full disk only the text on stderr and in the logs would be left otherwise.
  if (!file.ok() || ::posix_fallocate(file->get(), 0, kept_room_bytes) != 0) {
    base::log::local::warning("runtime", "no room is kept for failure.json in '{}'", run.string());
  }
}

void write_failure(const Failure& failure, const std::filesystem::path& run) {
  const auto path = failure_of_run(run);
  const auto text = file_text(to_json(failure));
  try {
    write_once(text, path, failure);
    return;
  } catch (const std::exception&) {
    ::unlink(kept_room(run).c_str());
  }
  try {
    write_once(text, path, failure);
  } catch (const std::exception& error) {
    base::log::local::warning("runtime", "cannot write '{}': {}", path.string(), error.what());
  }
}

void note_end_of_task(const std::filesystem::path& run, const std::string& end,
                      std::chrono::system_clock::time_point began) {
  const auto path = failure_of_run(run);
  std::error_code ignored;
  // None of a start whose ranks ended before they had made it.
  if (!std::filesystem::is_directory(run, ignored)) return;
  if (is_held_since_before(run, began)) return;
  auto failure = failure_since(path, began);
  if (!failure) {
    put_failure_aside(run);
    failure = to_json(unsaid_failure(end));
  }
  (*failure)["end_of_task"] = end;
  try {
    base::write_file_durably(path, file_text(*failure));
  } catch (const std::exception& error) {
    base::log::local::warning("runtime", "cannot write '{}': {}", path.string(), error.what());
  }
}

void put_failure_aside(const std::filesystem::path& run) {
  const auto path = failure_of_run(run);
  std::error_code error;
  if (run.empty() || !std::filesystem::exists(path, error)) return;
  for (int number = 1; number <= most_put_aside; ++number) {
    const auto aside = put_aside(run, number);
    if (number < most_put_aside && std::filesystem::exists(aside, error)) continue;
    std::filesystem::rename(path, aside, error);
    return;
  }
}

namespace {

constexpr std::size_t largest_file = std::size_t{1} << 20;

std::string text_in(const base::Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<std::int64_t> number_in(const base::Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<int> small_number_in(const base::Json& json, const char* key) {
  const auto number = number_in(json, key);
  if (!number || *number < 0 || *number > 1'000'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

const base::Json& list_in(const base::Json& json, const char* key) {
  static const base::Json nothing = base::Json::array();
  const auto found = json.find(key);
  return found != json.end() && found->is_array() ? *found : nothing;
}

std::optional<FailedOperation> operation_in(const base::Json& json) {
  constexpr std::size_t most_lines = 40;
  const auto found = json.find("collective");
  if (found == json.end() || !found->is_object()) return std::nullopt;
  FailedOperation operation{text_in(*found, "operation"),
                            text_in(*found, "group"),
                            number_in(*found, "number").value_or(0),
                            {},
                            {}};
  for (const auto& rank : list_in(*found, "missing_ranks")) {
    if (rank.is_number_integer()) operation.missing_ranks.push_back(rank.get<std::int64_t>());
  }
  for (const auto& line : list_in(*found, "account")) {
    if (line.is_string() && operation.account.size() < most_lines)
      operation.account.push_back(line);
  }
  return operation;
}

}  // namespace

base::Result<std::optional<Failure>> read_failure(const std::filesystem::path& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) return std::optional<Failure>{};
  const auto json = base::read_json_file(path, base::ExitCode::usage, largest_file);
  if (!json.ok()) return json.failure();
  if (!json->is_object()) {
    return base::usage_failure(base::format("{} is no object", path.filename().string()));
  }
  Failure failure;
  failure.cause = text_in(*json, "cause");
  failure.exit_code = small_number_in(*json, "exit_code");
  failure.first_rank = small_number_in(*json, "first_failing_rank");
  failure.first_task = small_number_in(*json, "first_failing_task");
  failure.host = text_in(*json, "host");
  failure.collective = operation_in(*json);
  failure.log = text_in(*json, "log");
  failure.time_ms = base::utc_milliseconds(text_in(*json, "time")).value_or(0);
  failure.end_of_task = text_in(*json, "end_of_task");
  return std::optional(std::move(failure));
}

std::vector<Failure> earlier_failures(const std::filesystem::path& run) {
  std::vector<Failure> failures;
  for (int number = 1; number <= most_put_aside; ++number) {
    auto failure = read_failure(put_aside(run, number));
    if (failure.ok() && *failure) failures.push_back(std::move(**failure));
  }
  return failures;
}

}  // namespace trireme::record
