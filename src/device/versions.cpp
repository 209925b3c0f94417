// SPDX-License-Identifier: Apache-2.0
#include "trireme/device/versions.hpp"

#include "trireme/base/format.hpp"

#include <oneapi/dnnl/dnnl.h>

namespace trireme::device {

std::vector<base::LibraryVersion> library_versions() {
  const auto* version = dnnl_version();
  return {{"oneDNN", base::format("{}.{}.{}", version->major, version->minor, version->patch)}};
}

std::vector<std::string> cpu_instruction_sets() {
  std::vector<std::string> sets;
  // The builtin takes nothing but literals.
  if (__builtin_cpu_supports("avx2") != 0) sets.emplace_back("avx2");
  if (__builtin_cpu_supports("fma") != 0) sets.emplace_back("fma");
  if (__builtin_cpu_supports("avx512f") != 0) sets.emplace_back("avx512f");
  if (__builtin_cpu_supports("avx512bw") != 0) sets.emplace_back("avx512bw");
  if (__builtin_cpu_supports("avx512dq") != 0) sets.emplace_back("avx512dq");
  if (__builtin_cpu_supports("avx512vl") != 0) sets.emplace_back("avx512vl");
  if (__builtin_cpu_supports("avx512vnni") != 0) sets.emplace_back("avx512vnni");
  if (__builtin_cpu_supports("avx512bf16") != 0) sets.emplace_back("avx512bf16");
  if (__builtin_cpu_supports("amx-tile") != 0) sets.emplace_back("amx-tile");
  if (__builtin_cpu_supports("amx-int8") != 0) sets.emplace_back("amx-int8");
  if (__builtin_cpu_supports("amx-bf16") != 0) sets.emplace_back("amx-bf16");
  return sets;
}

}  // namespace trireme::device
