// SPDX-License-Identifier: Apache-2.0
#include "train/saving/node_tier.hpp"

#include "trireme/base/counted.hpp"
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/base/text.hpp"
#include "trireme/checkpoint/output_file.hpp"
#include "trireme/checkpoint/place.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"

#include <map>
#include <string>
#include <system_error>
#include <vector>

namespace trireme::train {
namespace {

namespace fs = std::filesystem;

/// Number of each rank's node, by the nodes' names.
std::vector<int> nodes_of(comm::ProcessGroup& world) {
  auto mine = base::Fnv1a().add(base::log::settings().identity.node).value();
  std::vector<std::uint64_t> names(static_cast<std::size_t>(world.size()));
  constexpr std::int64_t words = sizeof(mine) / sizeof(std::int32_t);
  world.all_gather({&mine, device::DType::i32, {words}},
                   {names.data(), device::DType::i32, {words * world.size()}});
  std::map<std::uint64_t, int> numbers;
  std::vector<int> nodes;
  for (const auto name : names) {
    nodes.push_back(numbers.emplace(name, static_cast<int>(numbers.size())).first->second);
  }
  return nodes;
}

/// Collective. Fails if a node finds in its folder what another node has just put there.
void check_apart(const checkpoint::NodeTier& tier, comm::ProcessGroup& world) {
  const auto start = comm::broadcast_bytes(world, base::random_id());
  const auto prefix = base::format("start-{}.", start);
  const bool leads = tier.leads_node(world.rank());
  const auto mine = tier.folder() / base::format("{}{}", prefix, world.rank());
  comm::agree_after(world, [&] {
    if (leads) checkpoint::write_text(checkpoint::FileSystem::system(), mine, "\n");
  });
  int found = 0;
  const auto status = comm::status_of([&] {
    if (!leads) return;
    for (const auto& entry : fs::directory_iterator(tier.folder())) {
      if (entry.path().filename().string().starts_with(prefix)) ++found;
    }
  });
  world.barrier();
  std::error_code ignored;
  if (leads) fs::remove(mine, ignored);
  comm::agree(world, status);
  comm::agree_after(world, [&] {
    if (found <= 1) return;
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("'{}' is the same folder on {} nodes (the loss of that storage would lose all "
                     "copies); set checkpoint.local_directory to storage that each node has for "
                     "itself, such as /dev/shm",
                     tier.folder().string(), found));
  });
}

}  // namespace

std::optional<checkpoint::NodeTier> open_node_tier(const config::CheckpointOptions& keys,
                                                   const fs::path& run, comm::ProcessGroup& world) {
  const fs::path local = keys.local_directory;
  if (local.empty()) return std::nullopt;
  std::string id;
  comm::agree_after(world, [&] {
    if (world.rank() == 0) id = checkpoint::run_id(run);
  });
  id = comm::broadcast_bytes(world, id);
  const auto nodes = nodes_of(world);
  // Its ranks ask this one for their places alone.
  const checkpoint::NodeTier places({}, nodes, keys.replicas);
  fs::path folder;
  comm::agree_after(world, [&] {
    folder = checkpoint::open_node_folder(local, run, id, places.leads_node(world.rank()));
  });
  checkpoint::NodeTier tier(folder, nodes, keys.replicas);
  check_apart(tier, world);
  if (tier.copies() < keys.replicas) {
    base::log::warning("train",
                       "checkpoints in '{}' have copies on {} instead of {} (checkpoint.replicas): "
                       "there are no more",
                       folder.string(), base::counted(tier.copies(), "other node"), keys.replicas);
  }
  return tier;
}

}  // namespace trireme::train
