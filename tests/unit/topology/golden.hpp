// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/topology/describe.hpp"

#include <catch2/catch.hpp>

#include <filesystem>
#include <fstream>
#include <set>

namespace trireme::tests {

/// Binding tables for the numbers of ranks that say most: few, some, one per core, too many.
inline std::string binding_tables(const topology::Machine& machine) {
  std::string text;
  for (const int ranks : {1, 2, 3, 4, 6, 8}) {
    text += base::format("\n{} local rank{}\n", ranks, ranks == 1 ? "" : "s");
    text += topology::plan_text(topology::plan_binding(machine, ranks).value());
  }
  return text;
}

/// Placements for as many ranks as GPUs, half as many, one, and one too many; on machines without
/// GPUs for one rank and four.
inline std::string placement_tables(const topology::Machine& machine) {
  std::set<int> counts{1, 4};
  if (const int gpus = static_cast<int>(machine.gpus.size()); gpus > 0) {
    counts = {1, std::max(1, gpus / 2), gpus, gpus + 1};
  }
  std::string text;
  for (const int ranks : counts) {
    text +=
        base::format("{}{} local rank{}\n", text.empty() ? "" : "\n", ranks, ranks == 1 ? "" : "s");
    const auto placement = topology::place_ranks(machine, ranks, topology::GpuUse::one_each);
    text += topology::placement_text(machine, placement.value());
  }
  return text;
}

/// Compares with tests/golden/topology/<name>.txt. What differs is left in the build folder, so
/// that a wanted change is a copy away.
inline void check_golden(const std::string& name, const std::string& text) {
  const auto golden =
      std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/topology" / (name + ".txt");
  const auto expected = base::read_text_file(golden);
  if (expected.ok() && *expected == text) {
    SUCCEED();
    return;
  }
  const auto actual =
      std::filesystem::path(TRIREME_BINARY_DIR) / "golden/topology" / (name + ".txt");
  std::filesystem::create_directories(actual.parent_path());
  std::ofstream(actual) << text;
  FAIL_CHECK(actual.string() << " differs from " << golden.string()
                             << "; look at the difference, and copy it there if it is wanted");
}

}  // namespace trireme::tests
