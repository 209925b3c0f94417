// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/device/kernels.hpp"

#include "unit/device/test_tensor.hpp"

#include <catch2/catch.hpp>

#include <memory>
#include <string>
#include <vector>

namespace trireme::device::test {

struct Backend {
  std::string name;
  std::shared_ptr<Kernels> kernels;
};

/// Every backend of this build that runs on this machine, in each of its variants: what a
/// contract test is run over.
const std::vector<Backend>& backends();

/// body(kernels) for each backend; a failure names the backend and the seed.
template <typename Body>
void for_each_backend(const Body& body) {
  for (const auto& backend : backends()) {
    INFO("backend " << backend.name << ", --rng-seed " << run_seed());
    body(*backend.kernels);
  }
}

}  // namespace trireme::device::test
