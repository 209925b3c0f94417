// SPDX-License-Identifier: Apache-2.0
#include "golden.hpp"

#include "support/load_machine.hpp"

#include <fstream>

using namespace trireme;
using namespace trireme::tests;

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
