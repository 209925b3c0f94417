// SPDX-License-Identifier: Apache-2.0
#include "trireme/comm/axis_groups.hpp"

#include "trireme/base/contract.hpp"

#include <algorithm>
#include <utility>

namespace trireme::comm {

using layout::Axis;

ProcessGroup& AxisGroups::on(Axis axis) const {
  auto* const group = groups_[static_cast<std::size_t>(axis)];
  TRIREME_EXPECT(group != nullptr, "the mesh of these groups has the axis");
  return *group;
}

void AxisGroups::set(Axis axis, ProcessGroup& group) {
  groups_[static_cast<std::size_t>(axis)] = &group;
}

OwnedAxisGroups::OwnedAxisGroups(const layout::Mesh& mesh, base::Rank rank, const Make& make) {
  // Order: the same on every rank, because making a group waits for all of its members.
  const auto& axes = mesh.axes();
  for (auto extent = axes.rbegin(); extent != axes.rend(); ++extent) {
    auto& made = all_.emplace_back(AxisGroup{extent->axis, Members::all, nullptr});
    made.group = make(made, layout::short_name(made.axis), mesh.group(made.axis, rank));
  }
  if (mesh.degree(Axis::context) > 1) {
    auto& replicas = all_.emplace_back(AxisGroup{Axis::data, Members::replicas, nullptr});
    replicas.group = make(replicas, "replicas", mesh.group(layout::replica_axes, rank));
  }
  auto& ends = all_.emplace_back(AxisGroup{Axis::pipeline, Members::ends, nullptr});
  const auto stages = mesh.group(Axis::pipeline, rank);
  if (stages.size() == 1 || (rank != stages.front() && rank != stages.back())) return;
  ends.group = make(ends, "embedding", {stages.front(), stages.back()});
}

OwnedAxisGroups::~OwnedAxisGroups() {
  while (!all_.empty()) all_.pop_back();
}

AxisGroups OwnedAxisGroups::views() const {
  AxisGroups views;
  for (const auto& [axis, members, group] : all_) {
    if (members == Members::ends) views.set_ends(group.get());
    if (!group) continue;
    if (members == Members::replicas) views.set_replicas(*group);
    if (members == Members::all) views.set(axis, *group);
  }
  return views;
}

std::unique_ptr<ProcessGroup> OwnedAxisGroups::take(Axis axis) {
  const auto found = std::find_if(all_.begin(), all_.end(), [&](const AxisGroup& each) {
    return each.axis == axis && each.members == Members::all;
  });
  TRIREME_EXPECT(found != all_.end(), "the mesh of these groups has the axis");
  return std::move(found->group);
}

OwnedAxisGroups make_dry_run_groups(const layout::Mesh& mesh, base::Rank rank, DryRunData data,
                                    const std::function<std::size_t*(const AxisGroup&)>& moved) {
  return {mesh, rank, [&](const AxisGroup& of, const char* name, std::vector<base::Rank> members) {
            const auto own = std::find(members.begin(), members.end(), rank) - members.begin();
            return make_dry_run_group(name, std::move(members), static_cast<int>(own), data,
                                      moved ? moved(of) : nullptr);
          }};
}

}  // namespace trireme::comm
