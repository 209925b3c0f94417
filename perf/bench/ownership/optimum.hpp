// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

namespace trireme::bench {

/// A bound below which no largest load of `ranks` ranks that take whole matrices can be. `found` is
/// the largest load of a plan that is known.
///
/// Branch and bound: rank after rank is filled, first with the largest matrix left, as long as what
/// all ranks leave unused stays below what a load allows; what is known to fail is not tried again.
/// Matrices below a hundredth of the mean load count as divisible, which only lowers the bound. It
/// is found to a part in a thousand, or to what `most_nodes` decide.
double bound_of_largest_load(std::span<const double> costs, int ranks, double found,
                             long most_nodes = 5'000'000);

}  // namespace trireme::bench
