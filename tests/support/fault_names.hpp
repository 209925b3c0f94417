// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

/// Names for the memory where a process died: tests name what nobody may touch. All of it is safe
/// in a signal handler.
namespace trireme::testing::faults {

void say(const char* text);
void say(std::size_t number);

/// Says what lies at an address that was touched and may not be; false: it knows nothing of it.
using Namer = bool (*)(const void* address);

/// From now on asked before whoever handled faults until now. Several may be watched.
void watch(Namer namer);

}  // namespace trireme::testing::faults
