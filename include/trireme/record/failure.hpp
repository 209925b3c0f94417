// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/id.hpp"
#include "trireme/base/result.hpp"

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace trireme::record {

/// Operation of a process group that could not finish.
struct FailedOperation {
  std::string operation;  ///< "all_reduce"
  std::string group;
  std::int64_t number = 0;
  std::vector<std::int64_t> missing_ranks;
  /// NCCL's own diagnosis, a line each.
  std::vector<std::string> account;
};

/// Content of RUN/failure.json: the first failure of a start.
struct Failure {
  std::string cause;
  std::optional<int> exit_code;
  /// Nothing where no rank has lived to report it; the host is then empty.
  std::optional<int> first_rank;
  /// The launcher's number of that rank.
  std::optional<int> first_task;
  std::string host;
  /// Nothing when none was under way.
  std::optional<FailedOperation> collective;
  /// Log of the rank; empty without one.
  std::string log;
  /// Time of the writing, since 1970; 0 when it is not recorded.
  std::int64_t time_ms = 0;
  /// End of the first failing rank's process ("signal SIGSEGV"), as its parent saw it; or empty.
  std::string end_of_task;
};

/// RUN/failure.json
std::filesystem::path failure_of_run(const std::filesystem::path& run);
/// RUN/log/r0003.txt
std::filesystem::path rank_log(const std::filesystem::path& run, base::Rank rank);

/// Reads such a file as untrusted input: nothing where there is none, a failure (usage) where it is
/// no failure's.
base::Result<std::optional<Failure>> read_failure(const std::filesystem::path& path);

/// Failures that later starts have put aside (RUN/failure-1.json and so on), oldest first; what is
/// no such file is left out.
std::vector<Failure> earlier_failures(const std::filesystem::path& run);

/// Writes RUN/failure.json. The first rank to write it wins, so that the cause is the first one.
/// Never throws: a failure to write is logged.
void write_failure(const Failure& failure, const std::filesystem::path& run);

/// Adds to RUN/failure.json of a start that began at `began` how the task of the first failing rank
/// ended ("signal SIGSEGV"), which only the parent of its process knows. Where no rank has lived to
/// write the file, it is made, and one of an earlier start put aside. Nothing without a run
/// directory, and where another start holds it; a failure to write is logged.
void note_end_of_task(const std::filesystem::path& run, const std::string& end,
                      std::chrono::system_clock::time_point began);

/// Reserves room in the run directory that write_failure() frees when the disk is full.
void keep_room_for_failure(const std::filesystem::path& run);

/// Puts failure.json of an earlier start aside as failure-1.json, failure-2.json…, so that this
/// start can leave its own. To be called by one process, once the run is its own.
void put_failure_aside(const std::filesystem::path& run);

}  // namespace trireme::record
