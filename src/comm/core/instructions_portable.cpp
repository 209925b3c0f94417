// SPDX-License-Identifier: Apache-2.0
// Other architectures than x86-64: the compiler's own vectors, and no set to choose from.
#include "comm/core/ordered_sum.hpp"

namespace trireme::comm {

Instructions best_instructions() {
  return Instructions::portable;
}

// Never chosen; each leaves all elements to its caller.
namespace avx2 {
std::int64_t sum_f32(const void* const*, int, float*, std::int64_t) {
  return 0;
}
std::int64_t sum_bf16(const void* const*, int, std::uint16_t*, std::int64_t) {
  return 0;
}
}  // namespace avx2
namespace avx512 {
std::int64_t sum_f32(const void* const*, int, float*, std::int64_t) {
  return 0;
}
std::int64_t sum_bf16(const void* const*, int, std::uint16_t*, std::int64_t) {
  return 0;
}
}  // namespace avx512

}  // namespace trireme::comm
