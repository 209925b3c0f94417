// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/json.hpp"
#include "trireme/config/config.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/track/endpoint.hpp"
#include "trireme/track/exposition.hpp"
#include "trireme/train/report.hpp"

#include <filesystem>
#include <memory>
#include <string>

namespace trireme::apps {

/// Answers to Prometheus of one node (track.prometheus_port): the numbers of its ranks and its
/// network, and on the first node those of the run.
class NodeEndpoint {
 public:
  /// Collective over all ranks. Null where there is none: without track.prometheus_port, and on all
  /// but the first rank of each node. A node that cannot listen is warned of, and training goes on.
  /// The first rank writes RUN/track/prometheus.targets.json and the token.
  static std::unique_ptr<NodeEndpoint> start(const config::Config& config,
                                             const runtime::Cluster& cluster);
  NodeEndpoint(const NodeEndpoint&) = delete;
  NodeEndpoint& operator=(const NodeEndpoint&) = delete;
  /// The first rank's takes the list of targets away: they are gone.
  ~NodeEndpoint();

  /// What a rank shows of a step.
  static comm::PublishedNumbers numbers_of(const train::StepRecord& record);

 private:
  NodeEndpoint(const config::Config& config, const runtime::Cluster& cluster);

  /// Writes the list of targets and the token. Throws Error.
  void tell(const base::Json& targets, const std::string& token) const;
  std::string text();
  void add_ranks(track::Exposition& exposition) const;
  void add_node(track::Exposition& exposition) const;

  const comm::MpiRuntime& mpi_;
  std::string run_;
  std::filesystem::path targets_;  // empty but on the first rank
  std::filesystem::path token_;
  std::unique_ptr<track::RunExposition> of_run_;
  std::unique_ptr<track::Endpoint> endpoint_;
};

}  // namespace trireme::apps
