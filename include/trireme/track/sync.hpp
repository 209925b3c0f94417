// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/file.hpp"
#include "trireme/config/options.hpp"
#include "trireme/telemetry/run_record.hpp"
#include "trireme/track/target.hpp"

#include <atomic>
#include <chrono>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

/// A run's record, sent to the trackers that people already have: read from metrics.jsonl and from
/// recordings of steps alone, while the run goes on or later.
namespace trireme::track {

class Sink;

/// Whether more may follow.
enum class Send {
  /// All steps but the last, to which an evaluation and a save may still come.
  settled,
  /// All there are, and how the run has ended.
  all
};

/// Ranks whose spans trackers get of recorded steps.
using config::TraceRanks;
/// "first-of-node", as track.trace_ranks has it.
const char* name(TraceRanks ranks);
/// Ranks in such a name.
std::optional<TraceRanks> trace_ranks(std::string_view name);

/// A moment by which all requests to trackers end. Another thread may set it.
class Deadline {
 public:
  using Clock = std::chrono::steady_clock;
  Deadline() = default;
  explicit Deadline(Clock::time_point at) : at_(at.time_since_epoch().count()) {}

  void set(Clock::time_point at) { at_ = at.time_since_epoch().count(); }
  Clock::time_point get() const { return Clock::time_point(Clock::duration(at_.load())); }

 private:
  std::atomic<Clock::rep> at_{Clock::time_point::max().time_since_epoch().count()};
};

/// Sends what was not sent before: each step, evaluation and save of the final lineage once, also
/// if a process is killed at any moment, or a server was gone. What was sent is noted in
/// RUN/track/KIND-HASH.json, after each batch. A step that the run makes again after it was sent is
/// not sent a second time.
class Sync {
 public:
  struct Options {
    /// Tokens of servers: MLFLOW_TRACKING_TOKEN, OTEL_EXPORTER_OTLP_HEADERS.
    base::Environment environment = {};
    /// How long a server may be gone before send() fails.
    std::chrono::milliseconds patience{30'000};
    /// Deadline of all requests together, whatever the patience of each; it outlives the Sync.
    const Deadline* deadline = nullptr;
    /// Rows of a batch.
    std::size_t batch_rows = 500;
    TraceRanks trace_ranks = TraceRanks::sampled;
  };
  struct Counts {
    std::int64_t rows = 0;
    std::int64_t points = 0;
    /// Spans of traces.
    std::int64_t spans = 0;
  };

  /// Failures: no run directory (usage), another process sends this run there (launch), storage
  /// refuses (checkpoint).
  static base::Result<Sync> open(const std::filesystem::path& run, const Target& target,
                                 Options options);
  Sync(Sync&&) noexcept;
  Sync& operator=(Sync&&) = delete;
  Sync(const Sync&) = delete;
  Sync& operator=(const Sync&) = delete;
  ~Sync();

  /// Reads on and sends. Throws Error; what has been sent until then is noted.
  Counts send(Send what);
  /// Where it went, for people: a file, or the run's page.
  std::string place() const;

 private:
  struct Parts;
  explicit Sync(std::unique_ptr<Parts> parts);
  std::unique_ptr<Parts> parts_;
};

}  // namespace trireme::track
