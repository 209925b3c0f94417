// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/telemetry/rank_trace.hpp"
#include "trireme/track/sync.hpp"

#include "rows.hpp"

#include <algorithm>
#include <span>
#include <string>

namespace trireme::track {

/// A tracker's place. `state` is what a sink has left there the last time (null the first time);
/// it is kept durably when send() or end() has returned. A sink whose process is killed in between
/// is called again with the same rows and the older state, and must not write any of them twice.
class Sink {
 public:
  virtual ~Sink() = default;
  /// Sends rows in their order. Throws Error.
  virtual void send(const RunFacts& run, std::span<const Row> rows, base::Json& state) = 0;
  /// Whether rows' activities and traces are sent as well.
  virtual bool takes_traces() const { return false; }
  /// Sends the spans of a rank, and returns their number; after a kill it is called again with the
  /// same trace. Throws Error.
  virtual std::int64_t send_trace(const RunFacts&, const telemetry::RankTrace&) { return 0; }
  /// Says that the run goes on, where end() has said otherwise before; false if nothing was said.
  /// Throws Error.
  virtual bool resume(const RunFacts&, base::Json&) { return false; }
  /// Says how the run stands after its last row; more rows may come at a later start of the run.
  virtual void end(const RunFacts& run, base::Json& state) = 0;
  /// For people.
  virtual std::string place(const RunFacts& run) const = 0;
};

/// A whole number that a sink has noted; 0 if there is none.
inline std::uint64_t noted(const base::Json& state, const char* key) {
  const auto found = state.find(key);
  if (found == state.end() || !found->is_number_integer()) return 0;
  return static_cast<std::uint64_t>(std::max<std::int64_t>(found->get<std::int64_t>(), 0));
}

std::unique_ptr<Sink> make_sink(const Target& target, const Sync::Options& options);

}  // namespace trireme::track
