// SPDX-License-Identifier: Apache-2.0
#include "count_up.hpp"

#include "simt.hpp"

namespace trireme::testing {
namespace {

namespace simt = device::simt;

void count_up(simt::Global<float> values, int count) {
  const auto index = simt::block() * simt::threads() + simt::thread();
  if (index < count) values.store(index, static_cast<float>(index));
}

}  // namespace

void with_count_up(float* memory, int count,
                   const std::function<void(const void* kernel, void** arguments)>& launch) {
  simt::Global<float> values(memory);
  void* arguments[] = {&values, &count};
  launch(simt::kernel_address(&count_up), arguments);
}

}  // namespace trireme::testing
