// SPDX-License-Identifier: Apache-2.0
#include "apps/node_endpoint.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/comm/bytes.hpp"

#include <cmath>

namespace trireme::apps {
namespace {

/// In the order of published().
track::RankStep step_in(const comm::PublishedNumbers& shown, base::Rank rank) {
  return {shown[0], shown[1], shown[2], shown[3], shown[4], shown[5], shown[6], rank.value()};
}

std::unique_ptr<track::NodeEndpoint> endpoint_of_node(const config::Config& config,
                                                      const runtime::Cluster& cluster,
                                                      const std::string& token) {
  const auto& keys = config.options().track;
  const auto& mpi = *cluster.mpi;
  track::NodeEndpoint::Options options{.run = config::run_label(config),
                                       .node = mpi.node_name(),
                                       .interface = keys.prometheus_interface,
                                       .port = static_cast<std::uint16_t>(keys.prometheus_port),
                                       .token = token,
                                       .run_directory = {}};
  if (cluster.rank.value() == 0) options.run_directory = config::run_directory(config);
  return std::make_unique<track::NodeEndpoint>(options, [&mpi] {
    const auto ranks = mpi.node_ranks();
    std::vector<track::RankStep> steps;
    for (int local = 0; local < mpi.local_size(); ++local) {
      const auto rank = ranks[static_cast<std::size_t>(local)];
      steps.push_back(step_in(mpi.published(base::LocalRank(local)), rank));
    }
    return steps;
  });
}

/// A run that Prometheus cannot find goes on.
template <typename Attempt>
void attempt(const Attempt& body) {
  try {
    body();
  } catch (const base::Error& error) {
    base::log::local::warning("track", "{} (training goes on without it)", error.what());
  }
}

}  // namespace

comm::PublishedNumbers published(const train::StepRecord& record) {
  const auto seconds = [](double ms) { return std::isnan(ms) ? 0 : ms / 1e3; };
  return {static_cast<double>(record.step), record.seconds(),
          seconds(record.exposed_comm_ms),  seconds(record.tensor_comm_ms),
          seconds(record.bubble_ms),        seconds(record.data_ms),
          record.computing_seconds()};
}

NodeAnswers answer_prometheus(const config::Config& config, const runtime::Cluster& cluster) {
  if (config.options().track.prometheus_port == 0 || cluster.mpi == nullptr) return {};
  auto& world = *cluster.world;
  const bool is_first = cluster.rank.value() == 0;
  const auto token = comm::broadcast_bytes(world, is_first ? base::random_id() : std::string());
  NodeAnswers node;
  if (cluster.mpi->local_rank().value() == 0) {
    attempt([&] { node.endpoint = endpoint_of_node(config, cluster, token); });
  }
  auto targets = base::Json::array();
  for (const auto& each :
       comm::gather_bytes(world, node.endpoint ? node.endpoint->target() : std::string())) {
    if (!each.empty()) targets.push_back(each);
  }
  if (is_first) {
    node.targets = std::make_unique<track::TargetList>(config::run_directory(config));
    attempt([&] { node.targets->write(targets, token); });
  }
  return node.endpoint ? std::move(node) : NodeAnswers{};
}

}  // namespace trireme::apps
