// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include "trireme/device/kernels.hpp"

#include <catch2/catch.hpp>

#include <iostream>

int main(int argc, char** argv) {
  const auto kernels = trireme::device::make_cuda_kernels(0);
  if (!kernels.ok()) {
    std::cout << "TRIREME_SKIP: " << kernels.failure().text << '\n';
    return 0;
  }
  std::cout << "libraries: " << (*kernels)->libraries() << '\n';
  return Catch::Session().run(argc, argv);
}
