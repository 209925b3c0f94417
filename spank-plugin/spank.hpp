// SPDX-License-Identifier: Apache-2.0
#pragma once

// spank.h has no extern "C", and needs the system's integer types.
#include <sys/types.h>

extern "C" {
#include <slurm/spank.h>
}
