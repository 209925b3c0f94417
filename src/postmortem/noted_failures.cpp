// SPDX-License-Identifier: Apache-2.0
#include "noted_failures.hpp"

#include "trireme/base/format.hpp"
#include "trireme/record/failure.hpp"

namespace trireme::postmortem {
namespace {

namespace fs = std::filesystem;

std::string text_of(const record::FailedOperation& operation) {
  auto text = base::format("{} number {} of process group '{}'", operation.operation,
                           operation.number, operation.group);
  if (!operation.missing_ranks.empty()) {
    text += base::format(", missing ranks: {}", base::join(operation.missing_ranks, ", "));
  }
  return text;
}

NotedFailure told(record::Failure failure) {
  FirstCause cause;
  cause.text = std::move(failure.cause);
  cause.rank = failure.first_rank;
  cause.task = failure.first_task;
  cause.host = std::move(failure.host);
  cause.time_ms = failure.time_ms;
  cause.log = std::move(failure.log);
  if (failure.collective) {
    cause.collective = text_of(*failure.collective);
    cause.account = std::move(failure.collective->account);
  }
  cause.end_of_task = std::move(failure.end_of_task);
  return {std::move(cause), failure.exit_code};
}

}  // namespace

base::Result<std::optional<NotedFailure>> noted_failure(const fs::path& run) {
  auto failure = record::read_failure(record::failure_of_run(run));
  if (!failure.ok()) return failure.failure();
  auto noted = std::move(failure).value();
  if (!noted) return std::optional<NotedFailure>{};
  return std::optional(told(std::move(*noted)));
}

std::vector<NotedFailure> earlier_failures(const fs::path& run) {
  std::vector<NotedFailure> failures;
  for (auto& failure : record::earlier_failures(run)) failures.push_back(told(std::move(failure)));
  return failures;
}

}  // namespace trireme::postmortem
