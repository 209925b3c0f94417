// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/track/sync.hpp"

#include "rows.hpp"

#include <filesystem>
#include <functional>

namespace trireme::track {

class Sink;

/// Sends the recordings of a run's steps (RUN/trace) that were not sent yet, rank by rank. Its
/// notes say up to which rank each is sent.
class Recordings {
 public:
  Recordings(std::filesystem::path run, TraceRanks ranks) : run_(std::move(run)), ranks_(ranks) {}

  void take_notes(const base::Json& notes);
  const base::Json& notes() const { return notes_; }
  /// `keep` is called when a rank was sent. Returns the number of spans. Throws Error.
  std::int64_t send(Sink& sink, const RunFacts& facts, const std::function<void()>& keep);

 private:
  std::int64_t send_one(const std::filesystem::path& folder, Sink& sink, const RunFacts& facts,
                        const std::function<void()>& keep);

  std::filesystem::path run_;
  TraceRanks ranks_;
  /// By folder: {"origin", "ranks", "next"}.
  base::Json notes_ = base::Json::object();
};

/// The ranks of a recording whose spans are sent, ascending. Of `sampled` at most 16, evenly
/// spread, the first always among them.
std::vector<int> ranks_to_send(const std::filesystem::path& recording, int world_size,
                               TraceRanks ranks);

}  // namespace trireme::track
