// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "track/sink.hpp"

namespace trireme::track {

/// DIR/<run>/events.out.tfevents....
std::unique_ptr<Sink> tensorboard_sink(const std::filesystem::path& folder);
/// DIR/wandb/offline-run-<time>-<id>/run-<id>.wandb, for `wandb sync`.
std::unique_ptr<Sink> wandb_sink(const std::filesystem::path& folder);
/// A run of experiment "trireme" on a tracking server.
std::unique_ptr<Sink> mlflow_sink(const std::string& url, const Sync::Options& options);
/// Gauges and sums by OTLP/HTTP, at URL/v1/metrics, and spans at URL/v1/traces.
std::unique_ptr<Sink> otlp_sink(const std::string& url, const Sync::Options& options);
/// The newest numbers as a file of node_exporter's textfile collector.
std::unique_ptr<Sink> prometheus_sink(const std::filesystem::path& file);

/// The name with '_' for what has a meaning in paths.
std::string file_name_of(const std::string& name);

}  // namespace trireme::track
