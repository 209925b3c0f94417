// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::track> track{.concern = Concern::running};

constexpr Key track_rows[] = {
    track.key<&TrackOptions::to>(
        "",
        "Where a thread of rank 0 sends the record to: tensorboard=DIR, wandb=DIR, mlflow=URL, "
        "otlp=URL, prometheus=FILE, as `trireme track sync` does. A tracker that is gone stops "
        "nothing. Paths are relative to the working directory."),
    track.key<&TrackOptions::interval>(
        "10s", {.type = Type::seconds, .unit = "seconds", .range = between(0.1, 86400)},
        "Time between two sendings."),
    track.key<&TrackOptions::trace_ranks>(
        "sampled",
        "Whose spans of recorded steps OpenTelemetry gets: those of at most 16 ranks, evenly "
        "spread (sampled), of the first rank, of each node's first, or of all."),
    track.key<&TrackOptions::prometheus_port>(
        "0", {.range = between(0, 65535)},
        "Port at which the first rank of each node answers GET /metrics for Prometheus: the run's "
        "numbers, each rank's, and the node's network. 0: none does. Where it is taken, the system "
        "chooses another; RUN/track/prometheus.targets.json has all of them (file_sd), "
        "RUN/track/prometheus.token the token that a scrape must send."),
    track.key<&TrackOptions::prometheus_interface>(
        "auto",
        {.auto_rule = "the one with the address of the host's name, else the first that is up"},
        "Network interface at which it answers: ib0, say, or lo."),
};

}  // namespace

std::span<const Key> track_keys() {
  return track_rows;
}

}  // namespace trireme::schema
