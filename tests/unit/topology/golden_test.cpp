// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

#include "support/load_machine.hpp"

#include <fstream>
#include <map>

using namespace trireme;
using namespace trireme::tests;

namespace {

constexpr const char* nic_fill = "#fdf0dc";

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t count = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++count;
  return count;
}

}  // namespace

TEST_CASE("the trees and binding tables of generated machines are the committed ones") {
  for (const auto& spec : all_machines()) {
    const auto machine = load(spec);
    check_golden(spec.name, topology::tree_text(machine) + binding_tables(machine));
  }
}

TEST_CASE("the placements on generated machines are the committed ones") {
  for (const auto& spec : all_machines()) {
    check_golden("placement/" + spec.name, placement_tables(load(spec)));
  }
}

TEST_CASE("each NIC that ranks use is drawn once, however many share it") {
  for (const auto& spec : all_machines()) {
    const auto machine = load(spec);
    for (const int ranks : {1, 4, 8}) {
      const auto placement =
          topology::place_ranks(machine, ranks, topology::GpuUse::one_each).value();
      std::map<int, std::vector<int>> ranks_of;
      for (const auto& slot : placement.slots) {
        for (const int nic : slot.nics) ranks_of[nic].push_back(slot.cpus.local_rank);
      }
      std::set<std::vector<int>> groups;
      for (const auto& [nic, users] : ranks_of) groups.insert(users);
      INFO(spec.name << ", " << ranks << " ranks");
      CHECK(occurrences(topology::placement_svg(machine, placement), nic_fill) == groups.size());
    }
  }
  const auto machine = load(two_socket_server());
  const auto placement = topology::place_ranks(machine, 4, topology::GpuUse::none).value();
  CHECK(occurrences(topology::placement_svg(machine, placement), "mlx5_0") == 1);
}

TEST_CASE("the picture in docs/topology.md is what the program draws") {
  const auto machine = load(paired_switches());
  const auto placement = topology::place_ranks(machine, 8, topology::GpuUse::one_each).value();
  const auto picture = topology::placement_svg(machine, placement);
  const auto committed = std::filesystem::path(TRIREME_SOURCE_DIR) / "docs/images/placement.svg";
  const auto expected = base::read_text_file(committed);
  if (expected.ok() && *expected == picture) return;
  const auto drawn = std::filesystem::path(TRIREME_BINARY_DIR) / "golden/placement.svg";
  std::filesystem::create_directories(drawn.parent_path());
  std::ofstream(drawn) << picture;
  FAIL(drawn.string() << " differs from " << committed.string()
                      << "; copy it there if it is wanted");
}
