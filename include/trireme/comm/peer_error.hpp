// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/id.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace trireme::comm {

/// State of a wait when it gave up.
struct Absence {
  /// "all_reduce", "receive from rank 3"…; empty when no operation was under way.
  std::string operation;
  /// Name of the process group; empty as above.
  std::string group;
  /// Collectives are numbered from 1 in every group, in the order of their start; messages of
  /// this rank in the group likewise.
  std::uint64_t number = 0;
  /// World ranks that did not arrive, or that failed, ascending.
  std::vector<base::Rank> ranks;
  /// Node of the first of them, when known.
  std::string host;
  double waited_seconds = 0;
  /// Root cause, without the operation of this rank: "rank 3 (…) died".
  std::string cause;
  /// Diagnosis of the library beneath, a line each: NCCL's warnings, and the findings of its RAS.
  std::vector<std::string> account = {};
};

/// Error of a wait for a peer that missed the deadline, died, or reported a failure
/// (ExitCode::peer).
class PeerError : public base::Error {
 public:
  PeerError(const std::string& text, Absence absence,
            std::source_location where = std::source_location::current())
      : Error(base::ExitCode::peer, text, where), absence_(std::move(absence)) {}

  const Absence& absence() const { return absence_; }

 private:
  Absence absence_;
};

/// Error that all ranks of a group throw together at the same place (comm::agree), so that the
/// program can end in good order when the group is the world: no rank is left waiting.
class AgreedError : public base::Error {
 public:
  AgreedError(const base::Failure& failure, base::Rank first, int group_size, int failed_count = 1,
              std::source_location where = std::source_location::current())
      : Error(failure, where),
        first_(first),
        group_size_(group_size),
        failed_count_(failed_count) {}

  /// The lowest rank that failed.
  base::Rank first() const { return first_; }
  /// Number of ranks that throw this.
  int group_size() const { return group_size_; }
  /// Number of them that failed with this very text.
  int failed_count() const { return failed_count_; }

 private:
  base::Rank first_;
  int group_size_;
  int failed_count_;
};

}  // namespace trireme::comm
