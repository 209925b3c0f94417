// SPDX-License-Identifier: Apache-2.0
#include "noted_failures.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/utc.hpp"

namespace trireme::postmortem {
namespace {

namespace fs = std::filesystem;
using base::Json;

constexpr std::size_t largest_file = std::size_t{1} << 20;
/// As many as runtime::put_failure_aside() keeps.
constexpr int most_earlier = 100;

std::string text_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

std::optional<std::int64_t> number_of(const Json& json, const char* key) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_number_integer()) return std::nullopt;
  return found->get<std::int64_t>();
}

std::optional<int> small_number(const Json& json, const char* key) {
  const auto number = number_of(json, key);
  if (!number || *number < 0 || *number > 1'000'000'000) return std::nullopt;
  return static_cast<int>(*number);
}

std::string collective_text(const Json& json) {
  const auto found = json.find("collective");
  if (found == json.end() || !found->is_object()) return {};
  std::vector<std::string> missing;
  if (const auto ranks = found->find("missing_ranks"); ranks != found->end() && ranks->is_array()) {
    for (const auto& rank : *ranks) {
      if (rank.is_number_integer()) missing.push_back(base::json_text(rank));
    }
  }
  auto text = base::format("{} number {} of process group '{}'", text_of(*found, "operation"),
                           number_of(*found, "number").value_or(0), text_of(*found, "group"));
  if (!missing.empty()) text += base::format(", missing ranks: {}", base::join(missing, ", "));
  return text;
}

/// Lines of a library's diagnosis, limited in number.
std::vector<std::string> account_in(const Json& json) {
  constexpr std::size_t most_lines = 40;
  std::vector<std::string> account;
  const auto collective = json.find("collective");
  if (collective == json.end() || !collective->is_object()) return account;
  const auto lines = collective->find("account");
  if (lines == collective->end() || !lines->is_array()) return account;
  for (const auto& line : *lines) {
    if (line.is_string() && account.size() < most_lines) account.push_back(line);
  }
  return account;
}

}  // namespace

base::Result<std::optional<NotedFailure>> read_failure(const fs::path& path) {
  std::error_code error;
  if (!fs::exists(path, error)) return std::optional<NotedFailure>{};
  const auto json = base::read_json_file(path, base::ExitCode::usage, largest_file);
  if (!json.ok()) return json.failure();
  if (!json->is_object()) {
    return base::usage_failure(base::format("{} is no object", path.filename().string()));
  }
  NotedFailure failure;
  auto& cause = failure.cause;
  cause.text = text_of(*json, "cause");
  cause.rank = small_number(*json, "first_failing_rank");
  cause.task = small_number(*json, "first_failing_task");
  cause.host = text_of(*json, "host");
  cause.time_ms = base::utc_milliseconds(text_of(*json, "time")).value_or(0);
  cause.log = text_of(*json, "log");
  cause.collective = collective_text(*json);
  cause.account = account_in(*json);
  cause.end_of_task = text_of(*json, "end_of_task");
  failure.exit_code = small_number(*json, "exit_code");
  return std::optional(std::move(failure));
}

std::vector<NotedFailure> earlier_failures(const fs::path& run) {
  std::vector<NotedFailure> failures;
  for (int number = 1; number <= most_earlier; ++number) {
    auto failure = read_failure(run / base::format("failure-{}.json", number));
    if (failure.ok() && *failure) failures.push_back(std::move(**failure));
  }
  return failures;
}

}  // namespace trireme::postmortem
