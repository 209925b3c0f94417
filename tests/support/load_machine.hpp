// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/discover.hpp"

#include "support/machines.hpp"

#include <catch2/catch.hpp>

namespace trireme::tests {

inline topology::Machine load(const MachineSpec& spec) {
  auto machine = topology::from_xml_text(machine_xml(spec), spec.name);
  INFO((machine.ok() ? std::string{} : machine.failure().text));
  REQUIRE(machine.ok());
  return std::move(machine).value();
}

}  // namespace trireme::tests
