// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/config/config.hpp"
#include "trireme/runtime/cluster.hpp"
#include "trireme/track/node_endpoint.hpp"
#include "trireme/train/report.hpp"

#include <memory>

namespace trireme::apps {

/// Answers of this node to Prometheus, and on the first rank the list of all nodes.
struct NodeAnswers {
  std::unique_ptr<track::TargetList> targets;
  // Behind the list: no scrape reads what is destroyed next.
  std::unique_ptr<track::NodeEndpoint> endpoint;
};

/// Collective over all ranks. Nothing where none answers: without track.prometheus_port, and on all
/// but the first rank of each node. A node that cannot listen is warned of, and training goes on.
/// The first rank writes RUN/track/prometheus.targets.json and the token.
NodeAnswers answer_prometheus(const config::Config& config, const runtime::Cluster& cluster);

/// Numbers of a step that a rank shows to its node's endpoint.
comm::PublishedNumbers published(const train::StepRecord& record);

}  // namespace trireme::apps
