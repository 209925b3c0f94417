// SPDX-License-Identifier: Apache-2.0
#include "unit/device/backends.hpp"

#include "trireme/base/format.hpp"

#include "device/cpu/cpu_kernels.hpp"
#include "unit/device/compare.hpp"

namespace trireme::device::test {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> list;
    list.push_back({"reference", make_reference_kernels()});
    for (const auto isa : cpu::all_isas) {
      if (!cpu::runs(isa)) continue;
      // Every instruction set, and several threads once: the comparisons with the reference go
      // through all pairs.
      const int threads = isa == cpu::best_isa() ? 3 : 1;
      list.push_back({base::format("cpu {} with {} threads", cpu::name(isa), threads),
                      cpu::make_kernels(threads, isa)});
    }
    return list;
  }();
  return all;
}

/// Any number of threads where tiles depend on the shape alone; one number, twice, where they suit
/// the threads.
const std::vector<Variants>& variants_under_test() {
  static const std::vector<Variants> all = [] {
    std::vector<Variants> list;
    for (const auto isa : cpu::all_isas) {
      if (!cpu::runs(isa)) continue;
      const auto of = [&](const std::string& what, Tiling tiling, std::vector<int> threads) {
        Variants variants{base::format("cpu {}, {}", cpu::name(isa), what), {}};
        for (const int count : threads) {
          variants.kernels.push_back(cpu::make_kernels(count, isa, tiling));
        }
        list.push_back(std::move(variants));
      };
      of("tiles by shape", Tiling::by_shape, {1, 2, 5});
      of("tiles for one thread", Tiling::for_threads, {1, 1});
      of("tiles for three threads", Tiling::for_threads, {3, 3});
    }
    return list;
  }();
  return all;
}

bool take_large_shapes() {
  return true;
}

}  // namespace trireme::device::test
