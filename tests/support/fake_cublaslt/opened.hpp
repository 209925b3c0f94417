// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/fake_cublaslt/controls.hpp"

#include <cublasLt.h>
#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace trireme::testing {

/// A library of cuBLASLt's name, opened for tests.
class OpenedCublaslt {
 public:
  explicit OpenedCublaslt(const std::string& path)
      : handle_(::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) throw std::runtime_error(::dlerror());
  }
  // Never closed: the library may keep threads.

  template <typename Function>
  Function* find(const char* name) const {
    auto* const function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    if (function == nullptr) throw std::runtime_error(std::string("there is no ") + name);
    return function;
  }
  /// The stand-in alone has them.
  CublasltControls& controls() const {
    return *find<CublasltControlsFunction>("fake_cublaslt_controls")();
  }

 private:
  void* handle_;
};

}  // namespace trireme::testing
