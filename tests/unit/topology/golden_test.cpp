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
