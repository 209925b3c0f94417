// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/track/endpoint.hpp"
#include "trireme/track/exposition.hpp"

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace trireme::track {

/// Numbers of its last step that a rank shows.
struct RankStep {
  double step = 0;
  double seconds = 0;
  double exposed_seconds = 0;
  double tensor_seconds = 0;
  double bubble_seconds = 0;
  double data_seconds = 0;
  double computing_seconds = 0;
  int rank = 0;
};

/// Answers to Prometheus of one node (track.prometheus_port): the numbers of its ranks and its
/// network, and on the first node those of the run.
class NodeEndpoint {
 public:
  struct Options {
    std::string run;  ///< its label
    std::string node;
    /// To listen at; without one the address that the host's name stands for.
    std::optional<std::string> interface;
    /// Taken if it is free, else the system chooses one.
    std::uint16_t port = 0;
    std::string token;
    /// Name of the run whose newest numbers are shown; empty: none.
    std::filesystem::path run_directory;
  };
  using Ranks = std::function<std::vector<RankStep>()>;

  /// `ranks` is called on the server's thread. Throws Error when nothing can listen (launch), or
  /// there is no such interface (usage).
  NodeEndpoint(const Options& options, Ranks ranks);
  NodeEndpoint(const NodeEndpoint&) = delete;
  NodeEndpoint& operator=(const NodeEndpoint&) = delete;
  ~NodeEndpoint() = default;

  /// "HOST:PORT", where it listens.
  const std::string& target() const { return target_; }

 private:
  std::string text();
  void add_ranks(Exposition& exposition, std::span<const RankStep> ranks) const;
  void add_node(Exposition& exposition, std::size_t ranks) const;

  std::string run_;
  std::string node_;
  Ranks ranks_;
  std::unique_ptr<RunExposition> of_run_;
  std::string target_;
  std::unique_ptr<Endpoint> endpoint_;
};

/// RUN/track/prometheus.targets.json, by which Prometheus finds the nodes of a run, and the token
/// that a scrape must send.
class TargetList {
 public:
  explicit TargetList(const std::filesystem::path& run);
  TargetList(const TargetList&) = delete;
  TargetList& operator=(const TargetList&) = delete;
  /// Takes the list away: the nodes are gone.
  ~TargetList();

  /// `targets`: texts of NodeEndpoint::target(). Throws Error.
  void write(const base::Json& targets, const std::string& token) const;

 private:
  std::filesystem::path targets_;
  std::filesystem::path token_;
};

}  // namespace trireme::track
