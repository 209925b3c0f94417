// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace trireme::bench {

/// Whole fused matrices under simple plans: the figures that others can check.
void print_simple_plans();
/// Plans of ownership::make_plan beside the peers', by ranks.
void print_balance();
/// Distance of whole-matrix plans from the optimum.
void print_optimum();
/// Seconds to plan.
void print_planning_time();
/// Modelled steps on 256 GPUs beside the peers'.
void print_steps();

}  // namespace trireme::bench
