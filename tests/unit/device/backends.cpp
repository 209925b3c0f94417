#include "unit/device/backends.hpp"

#include "trireme/base/format.hpp"

#include "device/cpu/cpu_kernels.hpp"

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

}  // namespace trireme::device::test
