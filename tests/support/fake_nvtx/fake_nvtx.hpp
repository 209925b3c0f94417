// SPDX-License-Identifier: Apache-2.0
#pragma once

extern "C" {

/// Ranges of domain "trireme" that were begun, in the order of their begins, a line each, indented
/// by two blanks for each range around them.
const char* fake_nvtx_ranges();
/// Ranges that were begun and have not ended.
int fake_nvtx_depth();
}
