// SPDX-License-Identifier: Apache-2.0
#include "support/fake_cublaslt/runtime.hpp"

#include <dlfcn.h>

namespace trireme::testing::cublaslt {
namespace {

template <typename Function>
void find(const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(RTLD_DEFAULT, name));
}

Runtime look() {
  Runtime runtime;
  find("cudaLaunchHostFunc", runtime.launch_host_function);
  find("cudaGetDevice", runtime.get_device);
  find("cudaDeviceGetAttribute", runtime.device_attribute);
  find("cudaDeviceSynchronize", runtime.synchronize);
  find("cudaStreamIsCapturing", runtime.is_capturing);
  return runtime;
}

}  // namespace

const Runtime& runtime() {
  static const Runtime found = look();
  return found;
}

int current_device() {
  int device = 0;
  if (runtime().get_device != nullptr) runtime().get_device(&device);
  return device;
}

int capability_of(int device) {
  int major = 9;
  int minor = 0;
  if (const auto ask = runtime().device_attribute; ask != nullptr) {
    ask(&major, cudaDevAttrComputeCapabilityMajor, device);
    ask(&minor, cudaDevAttrComputeCapabilityMinor, device);
  }
  return 10 * major + minor;
}

}  // namespace trireme::testing::cublaslt
