// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/versions.hpp"

#include <sys/utsname.h>

#include <fstream>

namespace trireme::device {

std::string cpu_model() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    // "model name\t: AMD EPYC 7B13"; other architectures give numbers alone.
    const auto colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  utsname system{};
  return ::uname(&system) == 0 ? system.machine : "unknown";
}

}  // namespace trireme::device
