// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/arena.hpp"

#include "trireme/base/error.hpp"
#include "trireme/device/kernels.hpp"

#include "device/cuda/runtime/stream.hpp"

#include <catch2/catch.hpp>

using namespace trireme;
using namespace trireme::device;

namespace {

float first_of(const Tensor& tensor) {
  float value = 0.0F;
  cuda::check(cudaMemcpy(&value, tensor.raw(), sizeof(value), cudaMemcpyDeviceToHost),
              "cudaMemcpy");
  return value;
}

}  // namespace

TEST_CASE("an arena of a GPU holds what a measuring arena counted") {
  const auto fill = [](Arena& arena) {
    arena.allocate(DType::bf16, {3, 5});
    return arena.allocate(DType::f32, {1000, 7});
  };
  auto measuring = Arena::measuring(Purpose::workspace);
  fill(measuring);
  auto arena = Arena::cuda(Purpose::workspace, measuring.peak_bytes());
  const auto tensor = fill(arena);
  CHECK(arena.used_bytes() == arena.capacity_bytes());
  const auto kernels = base::value_or_throw(make_cuda_kernels(0));
  kernels->issue(Fill{tensor, 2.5F});
  CHECK(kernels->sum(tensor) == 17500.0);
  CHECK(first_of(tensor) == 2.5F);
}

TEST_CASE("events order two streams") {
  const auto first = cuda::Stream::make();
  const auto second = cuda::Stream::make();
  const auto event = cuda::Event::make();
  auto memory = cuda::allocate_device(sizeof(float));
  cuda::check(cudaMemsetAsync(memory.get(), 0, sizeof(float), first.view().raw()),
              "cudaMemsetAsync");
  first.view().record(event.view());
  second.view().wait_for(event.view());
  float value = 1.0F;
  cuda::check(cudaMemcpyAsync(&value, memory.get(), sizeof(value), cudaMemcpyDeviceToHost,
                              second.view().raw()),
              "cudaMemcpyAsync");
  second.view().synchronize();
  CHECK(value == 0.0F);
}
