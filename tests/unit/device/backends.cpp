#include "unit/device/backends.hpp"

namespace trireme::device::test {

const std::vector<Backend>& backends() {
  static const std::vector<Backend> all = [] {
    std::vector<Backend> list;
    list.push_back({"reference", make_reference_kernels()});
    return list;
  }();
  return all;
}

}  // namespace trireme::device::test
