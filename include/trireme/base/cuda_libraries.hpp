// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/environment.hpp"
#include "trireme/base/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::base {

/// Names for dlopen of one of CUDA's libraries (such as "libcublasLt.so.13"), in the order in which
/// to try them: the bare name (LD_LIBRARY_PATH and the system's list), then the files of that name
/// that exist in
///   1. CUDA_HOME and CUDA_PATH, if set: their lib64, lib and targets/x86_64-linux/lib;
///   2. the folders beside each `nvcc` on PATH, /usr/local/cuda*, /opt/cuda;
///   3. the wheels of Python (site-packages/nvidia/*/lib) of VIRTUAL_ENV, CONDA_PREFIX, PYTHONPATH,
///      each python3 on PATH and where its links lead, ~/.local, /usr/local and /usr.
/// No file appears twice. `system_root` ("/") stands before the fixed folders, for tests.
std::vector<std::string> places_of_cuda_library(std::string_view file,
                                                const Environment& environment,
                                                const std::filesystem::path& system_root);

/// Names for dlopen with the environment of this process, which the dynamic loader reads as well.
std::vector<std::string> places_of_cuda_library(std::string_view file);

/// A library that is opened when it is wanted, not linked. Never closed: those of CUDA keep threads
/// and memory of the device until the process ends.
class OpenedLibrary {
 public:
  /// The first of `places` that the loader takes. Else a failure with the loader's reason for each:
  /// "cannot load {what}: {reasons}; {remedy}".
  static Result<OpenedLibrary> open(const std::vector<std::string>& places, std::string_view what,
                                    std::string_view remedy);

  /// Null, and one of missing(), where the library has no such symbol.
  template <typename Function>
  void find(const char* symbol, Function*& function) {
    find_optional(symbol, function);
    if (function == nullptr) missing_.emplace_back(symbol);
  }
  template <typename Function>
  void find_optional(const char* symbol, Function*& function) const {
    function = reinterpret_cast<Function*>(address_of(symbol));
  }
  /// Symbols that find() was asked for in vain, in that order.
  const std::vector<std::string>& missing() const { return missing_; }
  /// Failure (topology) where there are any: `name` is the library's, of whose version `built_with`
  /// this program saw the headers.
  Status check_symbols(std::string_view name, int built_with) const;
  /// The file that the loader took.
  std::string path() const;

 private:
  explicit OpenedLibrary(void* handle) : handle_(handle) {}
  void* address_of(const char* symbol) const;

  void* handle_;
  std::vector<std::string> missing_;
};

}  // namespace trireme::base
