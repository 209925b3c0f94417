// SPDX-License-Identifier: Apache-2.0
#include "apps/node_endpoint.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/base/tcp.hpp"
#include "trireme/base/text.hpp"
#include "trireme/comm/bytes.hpp"

#include <fcntl.h>
#include <netdb.h>
#include <unistd.h>

#include <array>
#include <fstream>
#include <sstream>

namespace trireme::apps {
namespace {

namespace fs = std::filesystem;
using track::Exposition;

struct RankMetric {
  std::string_view name;
  const char* help;
};
/// In the order of numbers_of().
constexpr std::array<RankMetric, 7> rank_metrics{{
    {"trireme_rank_step", "Steps that the rank has done"},
    {"trireme_rank_step_seconds", "Duration of the rank's last step"},
    {"trireme_rank_exposed_communication_seconds",
     "Exposed reductions of gradients in the rank's last step"},
    {"trireme_rank_tensor_communication_seconds",
     "Tensor-parallel collectives in the rank's last step"},
    {"trireme_rank_bubble_seconds", "Waiting for other stages in the rank's last step"},
    {"trireme_rank_data_seconds", "Reading samples in the rank's last step"},
    {track::rank_computing_metric, "The rank's last step without waiting and communication"},
}};

bool same_address(const base::tcp::SocketAddress& one, const base::tcp::SocketAddress& other) {
  auto a = one;
  auto b = other;
  base::tcp::set_port(a, 0);
  base::tcp::set_port(b, 0);
  return base::tcp::text_of(a) == base::tcp::text_of(b);
}

/// Addresses that the name of this host stands for.
std::vector<base::tcp::SocketAddress> addresses_of_host() {
  std::array<char, 256> name{};
  std::vector<base::tcp::SocketAddress> found;
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* list = nullptr;
  if (::gethostname(name.data(), name.size() - 1) != 0 ||
      ::getaddrinfo(name.data(), nullptr, &hints, &list) != 0) {
    return found;
  }
  for (const auto* each = list; each != nullptr; each = each->ai_next) {
    if (each->ai_addrlen > sizeof(base::tcp::SocketAddress)) continue;
    base::tcp::SocketAddress address{};
    std::copy_n(reinterpret_cast<const std::byte*>(each->ai_addr), each->ai_addrlen,
                reinterpret_cast<std::byte*>(&address));
    found.push_back(address);
  }
  ::freeaddrinfo(list);
  return found;
}

/// "10.0.0.1", without a port.
std::string host_text(base::tcp::SocketAddress address) {
  std::array<char, NI_MAXHOST> text{};
  const auto size = base::tcp::size_of(address);
  if (::getnameinfo(&address.any, size, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) !=
      0) {
    return {};
  }
  return text.data();
}

/// The address to listen at.
base::Result<std::string> address_at(const std::optional<std::string>& interface) {
  if (interface == "lo") return std::string("127.0.0.1");
  const auto all = base::tcp::interface_addresses();
  if (!all.ok()) return all.failure();
  const auto named = addresses_of_host();
  std::string first;
  std::string interfaces;
  for (const auto& each : *all) {
    const auto text = host_text(each.address);
    // One of a link alone needs its interface beside it.
    if (text.empty() || text.find('%') != std::string::npos) continue;
    if (interface == each.interface) return text;
    interfaces += (interfaces.empty() ? "" : ", ") + each.interface;
    for (const auto& address : named) {
      if (!interface && same_address(address, each.address)) return text;
    }
    if (first.empty()) first = text;
  }
  if (interface) {
    return base::usage_failure(
        base::format("track.prometheus_interface = {} is no interface of this host that is up (it "
                     "has {} and lo)",
                     base::printable(*interface), interfaces.empty() ? "none" : interfaces));
  }
  return first.empty() ? std::string("127.0.0.1") : first;
}

void write_secret(const fs::path& path, const std::string& text) {
  std::error_code error;
  // Made anew, so that nobody has it open, and its mode is this one.
  fs::remove(path, error);
  const auto file = base::value_or_throw(
      base::open_file(path, O_WRONLY | O_CREAT | O_EXCL, 0600, base::ExitCode::checkpoint));
  base::write_at(file, std::as_bytes(std::span(text)), 0, path);
}

/// Numbers that follow the names in "/proc/net/dev": received bytes first, sent ones ninth.
struct Traffic {
  std::string device;
  double received = 0;
  double sent = 0;
};
std::vector<Traffic> ethernet_traffic() {
  std::vector<Traffic> all;
  std::ifstream file("/proc/net/dev");
  for (std::string line; std::getline(file, line);) {
    const auto colon = line.find(':');
    if (colon == std::string::npos) continue;
    std::istringstream numbers(line.substr(colon + 1));
    std::array<double, 9> values{};
    for (auto& value : values) numbers >> value;
    const auto begin = line.find_first_not_of(' ');
    if (numbers) all.push_back({line.substr(begin, colon - begin), values[0], values[8]});
  }
  return all;
}

/// Ports of InfiniBand and RoCE adapters, whose counters count words of four bytes.
std::vector<Traffic> rdma_traffic() {
  std::vector<Traffic> all;
  std::error_code error;
  const auto number_in = [](const fs::path& path) {
    std::ifstream file(path);
    double value = 0;
    file >> value;
    return value;
  };
  for (const auto& device : fs::directory_iterator("/sys/class/infiniband", error)) {
    std::error_code none;
    for (const auto& port : fs::directory_iterator(device.path() / "ports", none)) {
      const auto counters = port.path() / "counters";
      all.push_back({device.path().filename().string() + ":" + port.path().filename().string(),
                     4 * number_in(counters / "port_rcv_data"),
                     4 * number_in(counters / "port_xmit_data")});
    }
  }
  return all;
}

/// Kilobytes of a line of /proc/meminfo, as bytes.
double memory_bytes(std::string_view key) {
  std::ifstream file("/proc/meminfo");
  for (std::string line; std::getline(file, line);) {
    if (!line.starts_with(key)) continue;
    std::istringstream numbers(line.substr(key.size() + 1));
    double value = 0;
    numbers >> value;
    return value * 1024;
  }
  return 0;
}

double load_of_a_minute() {
  double load = 0;
  std::ifstream("/proc/loadavg") >> load;
  return load;
}

}  // namespace

comm::PublishedNumbers NodeEndpoint::numbers_of(const train::StepRecord& record) {
  return {static_cast<double>(record.step),  record.seconds,        record.exposed_seconds,
          record.tensor_seconds.value_or(0), record.bubble_seconds, record.data_seconds,
          record.computing_seconds()};
}

NodeEndpoint::NodeEndpoint(const config::Config& config, const runtime::Cluster& cluster)
    : mpi_(*cluster.mpi), run_(config::run_label(config)) {
  if (cluster.rank.value() != 0) return;
  const auto run = config::run_directory(config);
  targets_ = run / track::prometheus_targets;
  token_ = run / track::prometheus_token;
  of_run_ = std::make_unique<track::RunExposition>(run);
}

NodeEndpoint::~NodeEndpoint() {
  // Order: no scrape reads what is destroyed next.
  endpoint_.reset();
  std::error_code error;
  if (!targets_.empty()) fs::remove(targets_, error);
}

std::unique_ptr<NodeEndpoint> NodeEndpoint::start(const config::Config& config,
                                                  const runtime::Cluster& cluster) {
  const auto& keys = config.options().track;
  if (keys.prometheus_port == 0 || cluster.mpi == nullptr) return nullptr;
  auto& world = *cluster.world;
  const auto token =
      comm::broadcast_bytes(world, cluster.rank.value() == 0 ? base::random_id() : std::string());
  std::unique_ptr<NodeEndpoint> node;
  std::string target;
  if (cluster.mpi->local_rank().value() == 0) {
    node.reset(new NodeEndpoint(config, cluster));
    try {
      const auto address = base::value_or_throw(address_at(keys.prometheus_interface));
      node->endpoint_ = std::make_unique<track::Endpoint>(
          track::Endpoint::Options{address, static_cast<std::uint16_t>(keys.prometheus_port),
                                   token},
          [self = node.get()] { return self->text(); });
      const bool v6 = address.find(':') != std::string::npos;
      target =
          base::format("{}{}{}:{}", v6 ? "[" : "", address, v6 ? "]" : "", node->endpoint_->port());
    } catch (const base::Error& error) {
      base::log::local::warning("track", "{} (training goes on without it)", error.what());
    }
  }
  auto targets = base::Json::array();
  for (const auto& each : comm::all_gather_bytes(world, target)) {
    if (!each.empty()) targets.push_back(each);
  }
  if (cluster.rank.value() == 0) {
    // What Prometheus cannot find is no reason to end a run.
    try {
      node->tell(targets, token);
    } catch (const base::Error& error) {
      base::log::local::warning("track", "{} (training goes on without it)", error.what());
    }
  }
  return node && node->endpoint_ ? std::move(node) : nullptr;
}

void NodeEndpoint::tell(const base::Json& targets, const std::string& token) const {
  base::success_or_throw(base::make_folders_durably(targets_.parent_path()));
  write_secret(token_, token);
  const auto list = base::Json::array({{{"targets", targets}, {"labels", base::Json::object()}}});
  base::write_file_durably(targets_, base::json_text(list) + "\n");
  base::log::info("track", "Prometheus finds {} in {}",
                  base::counted(static_cast<std::int64_t>(targets.size()), "node"),
                  targets_.string());
}

std::string NodeEndpoint::text() {
  Exposition exposition;
  if (of_run_) of_run_->add_to(exposition);
  add_ranks(exposition);
  add_node(exposition);
  return exposition.text();
}

void NodeEndpoint::add_ranks(Exposition& exposition) const {
  const auto ranks = mpi_.node_ranks();
  std::vector<comm::PublishedNumbers> numbers;
  for (int local = 0; local < mpi_.local_size(); ++local) {
    numbers.push_back(mpi_.published(base::LocalRank(local)));
  }
  for (std::size_t metric = 0; metric < rank_metrics.size(); ++metric) {
    exposition.metric(rank_metrics[metric].name, rank_metrics[metric].help);
    for (std::size_t local = 0; local < numbers.size(); ++local) {
      exposition.sample({{"run", run_},
                         {"node", mpi_.node_name()},
                         {"rank", std::to_string(ranks[local].value())}},
                        numbers[local][metric]);
    }
  }
}

void NodeEndpoint::add_node(Exposition& exposition) const {
  const Exposition::Labels labels{{"run", run_}, {"node", mpi_.node_name()}};
  const auto gauge = [&](const char* name, const char* help, double value) {
    exposition.metric(name, help);
    exposition.sample(labels, value);
  };
  gauge("trireme_node_ranks", "Ranks of the run on the node", mpi_.local_size());
  gauge("trireme_node_memory_bytes", "Memory of the node", memory_bytes("MemTotal:"));
  gauge("trireme_node_memory_available_bytes", "Memory of the node that can still be had",
        memory_bytes("MemAvailable:"));
  gauge("trireme_node_load", "Threads that run or want to, mean of a minute", load_of_a_minute());
  auto traffic = ethernet_traffic();
  const auto rdma = rdma_traffic();
  traffic.insert(traffic.end(), rdma.begin(), rdma.end());
  const auto counter = [&](const char* name, const char* help, double Traffic::*value) {
    exposition.metric(name, help, Exposition::Type::counter);
    for (const auto& each : traffic) {
      exposition.sample({{"run", run_}, {"node", mpi_.node_name()}, {"device", each.device}},
                        each.*value);
    }
  };
  counter("trireme_node_network_receive_bytes_total", "Bytes that the node has received",
          &Traffic::received);
  counter("trireme_node_network_transmit_bytes_total", "Bytes that the node has sent",
          &Traffic::sent);
}

}  // namespace trireme::apps
