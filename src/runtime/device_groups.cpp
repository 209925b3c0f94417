// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/device_groups.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/nccl_memory.hpp"

#include <chrono>
#include <map>
#include <thread>
#include <utility>
#include <vector>

namespace trireme::runtime {
namespace {

/// Reason why NCCL cannot be used by these ranks; empty when it can.
std::string obstacle(std::span<const NcclOffer> offers) {
  std::map<std::pair<int, std::string>, std::size_t> owners;
  for (std::size_t rank = 0; rank < offers.size(); ++rank) {
    const auto& offer = offers[rank];
    if (offer.version == 0) return base::format("rank {}: {}", rank, offer.reason);
    if (offer.version != offers[0].version) {
      return base::format(
          "rank 0 has NCCL {} and rank {} has {}, which do not understand each "
          "other",
          comm::nccl_version_text(offers[0].version), rank, comm::nccl_version_text(offer.version));
    }
    const auto [place, is_new] = owners.emplace(std::pair{offer.node, offer.gpu}, rank);
    if (!is_new) {
      return base::format("ranks {} and {} share {}, which NCCL refuses", place->second, rank,
                          offer.gpu);
    }
  }
  return {};
}

NcclOffer offer_of(const device::Device& device, const comm::MpiRuntime& mpi,
                   const base::Result<comm::NcclLibrary>& library) {
  NcclOffer offer{mpi.node_rank().value(), device.name(), 0, {}};
  if (library.ok()) {
    offer.version = library->version;
  } else {
    offer.reason = library.failure().text;
  }
  return offer;
}

/// Offers of all ranks, by rank, on the first; nothing on the others.
std::vector<NcclOffer> gather_offers(comm::ProcessGroup& world, const NcclOffer& mine) {
  const base::Json text = {mine.node, mine.gpu, mine.version, mine.reason};
  std::vector<NcclOffer> offers;
  for (const auto& answer : comm::gather_bytes(world, base::json_text(text))) {
    const auto json = base::value_or_throw(base::parse_json(answer, "what a rank has for NCCL"));
    offers.push_back({json.at(0).get<int>(), json.at(1).get<std::string>(), json.at(2).get<int>(),
                      json.at(3).get<std::string>()});
  }
  return offers;
}

/// First byte of a choice on its way.
constexpr char nccl_mark = 'n';
constexpr char staged_mark = 's';

/// Collective over the world. The first rank chooses for all.
DeviceGroupsChoice agree_on_groups(comm::ProcessGroup& world, DeviceGroups wish,
                                   const NcclOffer& mine) {
  const auto offers = gather_offers(world, mine);
  const auto choice = [&]() -> base::Result<std::string> {
    if (world.rank() != 0) return std::string();
    const auto chosen = choose_device_groups(wish, offers);
    if (!chosen.ok()) return chosen.failure();
    return (chosen->groups == DeviceGroups::nccl ? nccl_mark : staged_mark) + chosen->sentence;
  };
  const auto text = comm::agree_on_first(world, choice());
  return {text.front() == nccl_mark ? DeviceGroups::nccl : DeviceGroups::staged, text.substr(1)};
}

}  // namespace

base::Result<DeviceGroupsChoice> choose_device_groups(DeviceGroups wish,
                                                      std::span<const NcclOffer> offers) {
  if (wish == DeviceGroups::staged) {
    return DeviceGroupsChoice{DeviceGroups::staged,
                              "process groups go through the host, as comm.backend = staged asks"};
  }
  if (wish == DeviceGroups::automatic && offers.size() == 1) {
    return DeviceGroupsChoice{DeviceGroups::staged, "one rank needs no NCCL"};
  }
  const auto reason = obstacle(offers);
  if (reason.empty()) {
    return DeviceGroupsChoice{DeviceGroups::nccl,
                              base::format("process groups are those of NCCL {}",
                                           comm::nccl_version_text(offers[0].version))};
  }
  if (wish == DeviceGroups::nccl) {
    return base::Failure{
        base::ExitCode::topology,
        base::format("comm.backend = nccl cannot serve these ranks ({}); use auto or staged, which "
                     "move GPU memory through the host",
                     reason)};
  }
  return DeviceGroupsChoice{
      DeviceGroups::staged,
      base::format("process groups go through the host, which is slow, without NCCL ({})", reason)};
}

namespace {

/// True if Trireme's plugin has connections and has not logged their transports.
bool awaits_ways(const comm::NcclTransport& transport) {
  return transport.networks.count("Trireme") > 0 && transport.ways.empty();
}

TransportReport report_of(const comm::MpiRuntime& mpi, const Cluster& cluster,
                          const comm::NcclLog* log) {
  TransportReport report{mpi.node_rank().value(), cluster.binding.rdma_nics, {}, {}};
  if (log == nullptr) {
    report.unknown = "nobody has caught NCCL's log";
    return report;
  }
  auto text = log->text();
  if (text.ok()) report.transport = comm::read_nccl_log(*text);
  // Trireme's plugin logs when a send has ended, which may be after the sum.
  for (int look = 0; look < 50 && text.ok() && awaits_ways(report.transport); ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    text = log->text();
    if (text.ok()) report.transport = comm::read_nccl_log(*text);
  }
  if (!text.ok()) {
    report.unknown = text.failure().text;
    return report;
  }
  for (const auto& warning : comm::warnings_of_nccl_log(*text)) {
    base::log::local::warning("comm", "NCCL: {}", warning);
  }
  return report;
}

/// Purposes of the memory that collectives use: tensor-parallel ones also exchange activations,
/// context-parallel ones keys and values.
std::vector<device::Purpose> windows_of(const Cluster& cluster) {
  using device::Purpose;
  std::vector<Purpose> purposes{Purpose::parameters, Purpose::gradients};
  if (cluster.groups.on(layout::Axis::tensor).size() > 1 ||
      cluster.mesh.degree(layout::Axis::context) > 1) {
    for (const auto purpose : {Purpose::activations, Purpose::workspace, Purpose::communication}) {
      purposes.push_back(purpose);
    }
  }
  return purposes;
}

}  // namespace

DeviceGroupsReport use_device_groups(device::Device& device, Cluster& cluster,
                                     comm::MpiRuntime& mpi, const DeviceGroupsOptions& options) {
  auto& world = *cluster.world;
  if (device.is_host()) {
    comm::agree(world, check_other_groups(options.rdma, mpi.node_count(), "MPI's"));
    return {};
  }
  const auto library = options.library();
  const auto choice = agree_on_groups(world, options.wish, offer_of(device, mpi, library));
  if (choice.groups == DeviceGroups::staged) {
    comm::agree(world,
                check_other_groups(options.rdma, mpi.node_count(), "staged through the host"));
    use_staged_groups(device, cluster);
    return {choice.sentence, {}};
  }
  comm::NcclGroups groups(*library, mpi, world, device, options.nccl);
  groups.try_out();
  auto verdict = prove_transport(world, options.rdma, report_of(mpi, cluster, options.nccl.log));
  // Order: the same on all ranks, including those that have no such group, because splits are
  // collective. Communication of gradients and parameters overlaps computation, which waits for all
  // the rest.
  const bool has_others = cluster.mesh.degree(layout::Axis::context) > 1;
  for (auto& [axis, members, group] : cluster.groups.all()) {
    const bool overlaps = axis == layout::Axis::data;
    // Replicas reduce and gather in their place: a communicator would hold memory for nothing.
    if (overlaps && members == comm::Members::all && has_others) continue;
    group = groups.split(std::move(group),
                         overlaps ? device::Priority::overlapped : device::Priority::awaited);
  }
  auto memory = "";
  if (options.nccl.registration == comm::NcclRegistration::windows) {
    cluster.shared_memory = comm::with_nccl_memory(device, *library, windows_of(cluster));
    memory = cluster.shared_memory
                 ? "; memory that ranks share is in symmetric windows"
                 : "; symmetric windows need NCCL 2.27, so buffers are registered";
  }
  return {base::format("{} ({}){}", choice.sentence, library->path, memory), std::move(verdict)};
}

}  // namespace trireme::runtime
