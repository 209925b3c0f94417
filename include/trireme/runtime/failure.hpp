// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"

#include <chrono>
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

/// RUN/log/r0003.txt
std::filesystem::path rank_log(const std::filesystem::path& run, base::Rank rank);

/// The last line of a failed run on stderr: cause, first failing rank, its host, the log.
std::string last_line(const comm::RankFailure& failure, const std::string& log_file);

/// RUN/failure.json: cause, exit_code, first_failing_rank, host, collective (null when none was
/// under way; its "account" is NCCL's diagnosis, a line each), log, time. The first rank to write
/// it wins, so that the cause is the first one. Never throws: a failure to write is logged.
void write_failure(const comm::RankFailure& failure, const FailureReport& report);

/// Adds to RUN/failure.json of a start that began at `began` how the task of the first failing rank
/// ended ("signal SIGSEGV"), which only the parent of its process knows. Where no rank has lived to
/// write the file, it is made, and one of an earlier start put aside. Nothing without a run
/// directory, and where another start holds it; a failure to write is logged.
void note_end_of_task(const std::filesystem::path& run_directory, const std::string& end,
                      std::chrono::system_clock::time_point began);

/// Reserves room in the run directory that write_failure() frees when the disk is full.
void keep_room_for_failure(const std::filesystem::path& run_directory);

/// Puts failure.json of an earlier start aside as failure-1.json, failure-2.json…, so that this
/// start can leave its own. To be called by one process, once the run is its own.
void put_failure_aside(const std::filesystem::path& run_directory);

/// Installs both reports for a run that fails. Call once, early, without a run directory; again
/// once the run is this start's own.
void report_failures(comm::MpiRuntime& mpi, FailureReport report);

/// Installs the report of a command without a run directory: what all ranks refuse is one line on
/// stderr, as what one process refuses; a lost rank has last_line(). Call once, early.
void report_failures_of_command(comm::MpiRuntime& mpi);

}  // namespace trireme::runtime
