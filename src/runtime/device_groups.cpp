#include "trireme/runtime/device_groups.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/runtime/agree.hpp"

#include <map>
#include <utility>
#include <vector>

namespace trireme::runtime {
namespace {

/// Why NCCL cannot serve these ranks; empty when it can.
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
    const auto [place, is_new] = owners.emplace(std::pair{offer.node, offer.card}, rank);
    if (!is_new) {
      return base::format("ranks {} and {} share {}, which NCCL refuses", place->second, rank,
                          offer.card);
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

std::vector<NcclOffer> exchange(comm::ProcessGroup& world, const NcclOffer& mine) {
  const base::Json text = {mine.node, mine.card, mine.version, mine.reason};
  std::vector<NcclOffer> offers;
  for (const auto& answer : all_gather_text(world, text.dump())) {
    const auto json = base::value_or_throw(base::parse_json(answer, "what a rank has for NCCL"));
    offers.push_back({json.at(0).get<int>(), json.at(1).get<std::string>(), json.at(2).get<int>(),
                      json.at(3).get<std::string>()});
  }
  return offers;
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

std::string compute_on(device::Device& device, Cluster& cluster, comm::MpiRuntime& mpi,
                       DeviceGroups wish, const base::Result<comm::NcclLibrary>& library,
                       const comm::NcclOptions& options) {
  if (device.is_host()) return {};
  const auto offers = exchange(*cluster.world, offer_of(device, mpi, library));
  const auto choice = agree(*cluster.world, choose_device_groups(wish, offers));
  if (choice.groups == DeviceGroups::staged) {
    compute_on(device, cluster);
    return choice.sentence;
  }
  comm::NcclGroups groups(*library, mpi, *cluster.world, device, options);
  // In one order on all ranks, with those that have no such group: splits are collective. Gradients
  // and parameters travel beside computation, which waits for all the rest.
  const std::pair<std::unique_ptr<comm::ProcessGroup>*, device::Priority> kinds[] = {
      {&cluster.tp, device::Priority::awaited},
      {&cluster.pp, device::Priority::awaited},
      {&cluster.dp, device::Priority::overlapped},
      {&cluster.embedding, device::Priority::awaited}};
  for (const auto& [group, priority] : kinds) *group = groups.split(std::move(*group), priority);
  return base::format("{} ({})", choice.sentence, library->path);
}

}  // namespace trireme::runtime
