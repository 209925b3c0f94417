// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/layout/flat.hpp"

#include <cstdint>
#include <vector>

namespace trireme::layout {

/// Tokens of a sequence that one of `degree` context-parallel ranks has, ascending. Of 2 * degree
/// equal chunks rank r has chunks r and 2 * degree - 1 - r: causal attention gives early tokens few
/// keys and late ones many, and so equally many to every rank (Llama 3, Dubey et al. 2024, section
/// 3.3.2). One run of all tokens where there is one rank. The length is a multiple of 2 * degree.
std::vector<FlatRange> token_runs(std::int64_t sequence_length, int degree, int rank);

}  // namespace trireme::layout
