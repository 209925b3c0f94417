// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/record/failure.hpp"

#include <filesystem>
#include <string>

namespace trireme::runtime {

/// Files in which a failed run reports its failure.
struct FailureReport {
  /// Empty: no failure.json.
  std::filesystem::path run_directory;
  /// This rank's log; may be empty.
  std::string log_file;
};

/// The last line of a failed run on stderr: cause, first failing rank, its host, the log.
std::string last_line(const comm::RankFailure& failure, const std::string& log_file);

/// The failure as RUN/failure.json holds it.
record::Failure recorded(const comm::RankFailure& failure, const std::string& log_file);

/// Installs both reports for a run that fails. Call once, early, without a run directory; again
/// once the run is this start's own.
void report_failures(comm::MpiRuntime& mpi, FailureReport report);

/// Installs the report of a command without a run directory: what all ranks refuse is one line on
/// stderr, as what one process refuses; a lost rank has last_line(). Call once, early.
void report_failures_of_command(comm::MpiRuntime& mpi);

}  // namespace trireme::runtime
