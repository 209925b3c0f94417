// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/topology/binding.hpp"

#include <span>
#include <string>
#include <vector>

/// Cores in groups, and what a rank gets of one: shared by the plans with and without GPUs.
namespace trireme::topology {

/// Widest spread of the cores of one rank.
enum class Level { numa_node, package, machine };

/// Cores (indices, in the order in which they are assigned) that share an object of the level.
using Group = std::vector<int>;

const Core& core_at(const Machine& machine, int core);
int total_cores(const std::vector<Group>& groups);
int efficiency_of(const Machine& machine, int core);

/// Groups in ascending order of the level's objects; the fastest kind of cores first in each.
std::vector<Group> group_cores(const Machine& machine, const std::vector<int>& cores, Level level);

/// The fastest kind alone while it has a core for each rank, else all.
std::vector<int> usable_cores(const Machine& machine, const std::vector<int>& cores, int ranks);

/// The cores of rank `place` of `count` in a group. Slices begin at even parts of the group, which
/// keeps them on boundaries of shared caches where the numbers allow; where kinds differ, they
/// follow one another, so that the slowest cores are those left over.
std::span<const int> slice_of(const Machine& machine, const Group& group, int place, int count,
                              int cores_each);

/// The slot of a rank that computes on all of these cores; its reason is still empty.
BindingSlot make_slot(const Machine& machine, int local_rank, std::span<const int> cores);

/// "NUMA nodes 0-1", by the operating system's numbers.
std::string node_numbers(const Machine& machine, const std::vector<int>& nodes);
/// "1 core".
std::string cores_text(std::size_t count);
/// "14 cores of its own (28 hardware threads, one of each core computes) on NUMA node 0".
std::string own_cores_text(const Machine& machine, const BindingSlot& slot);
/// Notes such as "4 cores are left to the system, so that all ranks have equally many".
std::vector<std::string> notes_of(std::size_t usable, std::size_t used, std::size_t slow);

}  // namespace trireme::topology
