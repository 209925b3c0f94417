// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/engine/options.hpp"
#include "trireme/plan/search.hpp"
#include "trireme/predict/machine.hpp"

#include <compare>
#include <cstddef>
#include <vector>

/// Figures that a search compares. Private to the room.
namespace trireme::plan {

/// Less is better: ranks where they count, then seconds or money.
struct Score {
  double ranks = 0;
  double value = 0;
  auto operator<=>(const Score&) const = default;

  /// The worst score that is called a tie with this one.
  Score with_margin(double margin) const { return {ranks, value * (1 + margin)}; }
};

/// Seconds of a step, and those of them in which a node takes the power of one that computes.
struct StepSeconds {
  double all = 0;
  double busy = 0;
};
StepSeconds seconds_of(const predict::StepPrediction& step);
/// Seconds that no step of this bound falls below, nor its CO2 that of theirs.
StepSeconds seconds_of(predict::Time bound, const predict::Site& site);

Score score_of(Objective objective, const predict::Machine& machine, int ranks,
               const StepSeconds& seconds);

/// Money for a step on whole nodes; 0 where the machine's file has no price.
double cost_of_step(const predict::Machine& machine, int ranks, double seconds);

/// Whether the machine's file has what CO2 follows from, and kilograms of a step on whole nodes.
bool has_carbon(const predict::Machine& machine);
double carbon_of_step(const predict::Machine& machine, int ranks, const StepSeconds& seconds);

/// Numbers of ranks to look at: all that are asked for, and with other objectives than time every
/// part of them that is whole nodes, or a whole part of one.
std::vector<int> worlds_of(const predict::Machine& machine, const SearchRequest& request);

/// Bytes of a GPU, or of a node of cores, that arrays and the libraries of kernels may take.
std::size_t memory_for_arrays(const predict::Machine& machine, const schema::Options& keys);

/// Bytes that arrays of such a rank may take of a memory: libraries of GPUs work in some of it.
std::size_t room_for(const engine::EngineOptions& options, std::size_t memory);

}  // namespace trireme::plan
