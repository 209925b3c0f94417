// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/failure.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/utf8.hpp"

#include <algorithm>
#include <cstdio>

namespace trireme::runtime {

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

record::Failure recorded(const comm::RankFailure& failure, const std::string& log_file) {
  record::Failure own;
  own.cause = failure.cause;
  own.exit_code = static_cast<int>(failure.code);
  own.first_rank = failure.first.value();
  if (failure.first_task >= 0) own.first_task = failure.first_task;
  own.host = failure.host;
  own.log = log_file;
  const auto& absence = failure.absence;
  if (!absence.operation.empty()) {
    own.collective = {absence.operation,
                      absence.group,
                      static_cast<std::int64_t>(absence.number),
                      {},
                      absence.account};
    for (const auto rank : absence.ranks) own.collective->missing_ranks.push_back(rank.value());
  }
  return own;
}

void report_failures(comm::MpiRuntime& mpi, FailureReport report) {
  mpi.on_failure([report = std::move(report)](const comm::RankFailure& failure) mutable {
    std::error_code ignored;
    if (!std::filesystem::exists(report.log_file, ignored)) report.log_file.clear();
    const bool speaks =
        failure.voice == comm::Voice::every_rank || base::log::settings().identity.rank == 0;
    const bool writes =
        failure.voice == comm::Voice::every_rank ? failure.is_first_of_node : speaks;
    if (writes && !report.run_directory.empty()) {
      record::write_failure(recorded(failure, report.log_file), report.run_directory);
    }
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
