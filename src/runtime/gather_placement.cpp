// SPDX-License-Identifier: Apache-2.0
#include "trireme/runtime/gather_placement.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/mpi_runtime.hpp"

namespace trireme::runtime {

record::RunPlacement gather_placement(const Cluster& cluster) {
  const auto& binding = cluster.binding;
  const base::Json mine{
      {"node", cluster.mpi == nullptr ? std::string{} : cluster.mpi->node_name()},
      {"place", record::to_json(record::RankPlace{
                    {}, binding.numa_nodes, binding.cpus, binding.threads, binding.gpu_bus_id})}};
  const auto texts = comm::gather_bytes(*cluster.world, base::json_text(mine));
  record::RunPlacement placement;
  placement.mesh = cluster.mesh;
  for (const auto& each : texts) {
    const auto json = base::value_or_throw(base::parse_json(each, "the place of a rank"));
    placement.ranks.push_back(record::place_of(json["place"], json["node"]));
  }
  return placement;
}

}  // namespace trireme::runtime
