#include "unit/device/backends.hpp"

#include "trireme/base/format.hpp"

#include "device/cpu/cpu_kernels.hpp"

namespace trireme::device::test {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> list;
    list.push_back({"reference", make_reference_kernels()});
    for (const auto isa : {cpu::Isa::avx2, cpu::Isa::avx512}) {
      if (!cpu::runs(isa)) continue;
      for (const int threads : {1, 3}) {
        list.push_back({base::format("cpu {} with {} threads", cpu::name(isa), threads),
                        cpu::make_kernels(threads, isa)});
      }
    }
    return list;
  }();
  return all;
}

}  // namespace trireme::device::test
