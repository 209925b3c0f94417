// SPDX-License-Identifier: Apache-2.0
#include "trireme/track/node_endpoint.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "address.hpp"
#include "counters.hpp"

#include <array>

namespace trireme::track {
namespace {

struct RankMetric {
  std::string_view name;
  const char* help;
  double RankStep::*value;
};
constexpr std::array<RankMetric, 7> rank_metrics{{
    {"trireme_rank_step", "Steps that the rank has done", &RankStep::step},
    {"trireme_rank_step_seconds", "Duration of the rank's last step", &RankStep::seconds},
    {"trireme_rank_exposed_communication_seconds",
     "Exposed reductions of gradients in the rank's last step", &RankStep::exposed_seconds},
    {"trireme_rank_tensor_communication_seconds",
     "Tensor-parallel collectives in the rank's last step", &RankStep::tensor_seconds},
    {"trireme_rank_bubble_seconds", "Waiting for other stages in the rank's last step",
     &RankStep::bubble_seconds},
    {"trireme_rank_data_seconds", "Reading samples in the rank's last step",
     &RankStep::data_seconds},
    {rank_computing_metric, "The rank's last step without waiting and communication",
     &RankStep::computing_seconds},
}};

}  // namespace

NodeEndpoint::NodeEndpoint(const Options& options, Ranks ranks)
    : run_(options.run), node_(options.node), ranks_(std::move(ranks)) {
  if (!options.run_directory.empty()) {
    of_run_ = std::make_unique<RunExposition>(options.run_directory);
  }
  const auto address = base::value_or_throw(address_at(options.interface));
  endpoint_ = std::make_unique<Endpoint>(web::Server::Options{address, options.port, options.token},
                                         [this] { return text(); });
  const bool v6 = address.find(':') != std::string::npos;
  target_ = base::format("{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", endpoint_->port());
}

std::string NodeEndpoint::text() {
  Exposition exposition;
  if (of_run_) of_run_->add_to(exposition);
  const auto ranks = ranks_();
  add_ranks(exposition, ranks);
  add_node(exposition, ranks.size());
  return exposition.text();
}

void NodeEndpoint::add_ranks(Exposition& exposition, std::span<const RankStep> ranks) const {
  for (const auto& metric : rank_metrics) {
    exposition.metric(metric.name, metric.help);
    for (const auto& each : ranks) {
      exposition.sample({{"run", run_}, {"node", node_}, {"rank", std::to_string(each.rank)}},
                        each.*metric.value);
    }
  }
}

void NodeEndpoint::add_node(Exposition& exposition, std::size_t ranks) const {
  const Exposition::Labels labels{{"run", run_}, {"node", node_}};
  const auto gauge = [&](const char* name, const char* help, double value) {
    exposition.metric(name, help);
    exposition.sample(labels, value);
  };
  gauge("trireme_node_ranks", "Ranks of the run on the node", static_cast<double>(ranks));
  gauge("trireme_node_memory_bytes", "Memory of the node", memory_bytes("MemTotal:"));
  gauge("trireme_node_memory_available_bytes", "Memory of the node that can still be had",
        memory_bytes("MemAvailable:"));
  gauge("trireme_node_load", "Threads that run or want to, mean of a minute", load_of_a_minute());
  const auto traffic = network_traffic();
  const auto counter = [&](const char* name, const char* help, double Traffic::*value) {
    exposition.metric(name, help, Exposition::Type::counter);
    for (const auto& each : traffic) {
      exposition.sample({{"run", run_}, {"node", node_}, {"device", each.device}}, each.*value);
    }
  };
  counter("trireme_node_network_receive_bytes_total", "Bytes that the node has received",
          &Traffic::received);
  counter("trireme_node_network_transmit_bytes_total", "Bytes that the node has sent",
          &Traffic::sent);
}

}  // namespace trireme::track
