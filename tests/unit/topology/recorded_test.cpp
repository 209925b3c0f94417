// SPDX-License-Identifier: Apache-2.0
#include "trireme/topology/discover.hpp"
#include "trireme/topology/placement.hpp"

#include "binding_properties.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <filesystem>
#include <set>

using namespace trireme;
using namespace trireme::tests;

namespace {

/// The folder's machines in order; none when the folder is not there, which is said.
std::vector<std::filesystem::path> recorded_machines() {
  const std::filesystem::path folder(TRIREME_RECORDED_TOPOLOGIES);
  std::vector<std::filesystem::path> files;
  if (std::filesystem::is_directory(folder)) {
    for (const auto& entry : std::filesystem::directory_iterator(folder)) {
      if (entry.path().extension() == ".xml") files.push_back(entry.path());
    }
  }
  std::sort(files.begin(), files.end());
  if (files.empty()) {
    WARN("TRIREME_SKIP: no recorded machines in "
         << folder.string() << " (set TRIREME_RECORDED_TOPOLOGIES at configuration)");
  }
  return files;
}

topology::Machine load_file(const std::filesystem::path& file) {
  auto machine = topology::from_xml(file);
  INFO(file << (machine.ok() ? std::string{} : machine.failure().text));
  REQUIRE(machine.ok());
  return std::move(machine).value();
}

}  // namespace

TEST_CASE("plans on recorded machines keep whole, allowed, disjoint cores") {
  for (const auto& file : recorded_machines()) {
    const auto machine = load_file(file);
    const int cores = static_cast<int>(topology::allowed_cores(machine).size());
    for (const int ranks : {1, 2, 3, 5, 8, cores / 2, cores - 1, cores, cores + 1, 2 * cores}) {
      if (ranks < 1) continue;
      INFO(file << " with " << ranks << " ranks");
      const auto plan = topology::plan_binding(machine, ranks);
      REQUIRE(plan.ok());
      check_plan(machine, *plan, ranks);
    }
  }
}

TEST_CASE("placements on recorded machines give every rank a GPU of its own and allowed cores") {
  for (const auto& file : recorded_machines()) {
    const auto machine = load_file(file);
    const int gpus = static_cast<int>(machine.gpus.size());
    for (const int ranks : {1, gpus / 2, gpus}) {
      if (ranks < 1) continue;
      INFO(file << " with " << ranks << " ranks");
      const auto placement = topology::place_ranks(machine, ranks, topology::GpuUse::one_each);
      REQUIRE(placement.ok());
      REQUIRE(placement->slots.size() == static_cast<std::size_t>(ranks));
      std::set<int> taken;
      for (const auto& slot : placement->slots) {
        if (gpus > 0) CHECK(taken.insert(slot.gpu).second);
        CHECK(!slot.cpus.pus.empty());
        for (const auto nic : slot.nics) CHECK(static_cast<std::size_t>(nic) < machine.nics.size());
      }
    }
  }
}
