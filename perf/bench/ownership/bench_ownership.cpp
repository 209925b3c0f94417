// SPDX-License-Identifier: Apache-2.0
// usage: bench_ownership
// Who updates which matrix: balance, padding, distance from the optimum, time to plan, and modelled
// steps, of Qwen3's dense models. Everything is counted but the time to plan; no rank is started.
#include "sections.hpp"

int main() {
  trireme::bench::print_simple_plans();
  trireme::bench::print_balance();
  trireme::bench::print_optimum();
  trireme::bench::print_planning_time();
  trireme::bench::print_steps();
  return 0;
}
