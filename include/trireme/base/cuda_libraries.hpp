#pragma once

#include "trireme/base/environment.hpp"

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

/// By the environment of this process, which the loader of libraries looks into as well.
std::vector<std::string> places_of_cuda_library(std::string_view file);

}  // namespace trireme::base
