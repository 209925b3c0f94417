// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/device/arena.hpp"
#include "trireme/device/kernels.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::device;
using Catch::Matchers::Contains;

TEST_CASE("a GPU that is not there is refused with its reason") {
  // Whether this build has CUDA or not, and whatever GPUs the machine has.
  const auto kernels = make_cuda_kernels(1'000'000);
  REQUIRE(!kernels.ok());
  CHECK(kernels.failure().code == base::ExitCode::topology);
  CHECK_THAT(kernels.failure().text, Contains("cuda") && Contains("; "));
}

TEST_CASE("memory of GPUs is refused without a GPU, with the purpose that wanted it") {
  if (make_cuda_kernels(0).ok()) return;
  for (const auto make : {&Arena::cuda, &Arena::pinned}) {
    try {
      make(Purpose::optimizer, 1024);
      FAIL("memory of a GPU that is not there");
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::topology);
      CHECK_THAT(error.what(), Contains("optimizer") || Contains("not in this build"));
    }
  }
}
