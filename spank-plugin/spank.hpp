// SPDX-License-Identifier: Apache-2.0
#pragma once

// Declares C functions without saying so, and needs the system's integer types.
#include <sys/types.h>

#include <cstdint>

extern "C" {
#include <slurm/spank.h>
}
