// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

// Functions of the stand-in for tests, found in the library by name.
extern "C" {

/// The next call of this function fails; null: none.
void fake_cupti_refuse(const char* function);
/// So many records are lost of the next buffer.
void fake_cupti_lose(std::uint64_t records);
/// How its clock differs from the steady one, in nanoseconds.
std::int64_t fake_cupti_clock_offset();
/// Ids on the stack of external correlations, and kinds that are enabled.
int fake_cupti_depth();
int fake_cupti_enabled();
}
