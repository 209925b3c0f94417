// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/layout/mesh.hpp"

#include <array>
#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

namespace trireme::comm {

/// Process groups that a rank is in, by the axis on which their members differ. Views.
class AxisGroups {
 public:
  /// Ranks that differ from this one on the axis only, in its order.
  ProcessGroup& on(layout::Axis axis) const;
  /// The same; null where the mesh lacks the axis.
  ProcessGroup* if_any(layout::Axis axis) const { return groups_[static_cast<std::size_t>(axis)]; }
  /// Ranks that hold the same parameters, over layout::replica_axes.
  ProcessGroup& replicas() const {
    return replicas_ != nullptr ? *replicas_ : on(layout::Axis::data);
  }
  /// First and last stage of this rank's pipeline, which share tied embeddings; null on the stages
  /// between, and where there is one stage.
  ProcessGroup* ends() const { return ends_; }

  /// All ranks, for what their hosts tell each other; null where nobody has set it.
  ProcessGroup* all_ranks() const { return all_ranks_; }

  /// Puts a group in the place of another; it outlives this.
  void set(layout::Axis axis, ProcessGroup& group);
  void set_replicas(ProcessGroup& group) { replicas_ = &group; }
  void set_ends(ProcessGroup* group) { ends_ = group; }
  void set_all_ranks(ProcessGroup& group) { all_ranks_ = &group; }

 private:
  std::array<ProcessGroup*, layout::axis_count> groups_{};
  /// Null where they are the data-parallel ranks.
  ProcessGroup* replicas_ = nullptr;
  ProcessGroup* ends_ = nullptr;
  ProcessGroup* all_ranks_ = nullptr;
};

/// Members of a group on an axis.
enum class Members {
  all,       ///< all that differ on the axis
  ends,      ///< the first and the last of them
  replicas,  ///< all that differ on this or another one of layout::replica_axes
};

/// A process group of a rank, and what it is for.
struct AxisGroup {
  layout::Axis axis{};
  Members members = Members::all;
  std::unique_ptr<ProcessGroup> group;
};

/// Owner of a rank's process groups, in the order in which they were made: the same on all ranks
/// but for ends, which some ranks lack (`group` is null there).
class OwnedAxisGroups {
 public:
  /// Makes the group of these members, for a rank that is one of them.
  using Make = std::function<std::unique_ptr<ProcessGroup>(const AxisGroup& of, const char* name,
                                                           std::vector<base::Rank> members)>;
  OwnedAxisGroups() = default;
  /// Ends them in the reverse order of their making.
  ~OwnedAxisGroups();
  OwnedAxisGroups(const OwnedAxisGroups&) = delete;
  OwnedAxisGroups& operator=(const OwnedAxisGroups&) = delete;
  OwnedAxisGroups(OwnedAxisGroups&&) = default;
  OwnedAxisGroups& operator=(OwnedAxisGroups&& other) noexcept {
    std::swap(all_, other.all_);
    return *this;
  }
  /// Makes one on each axis of the mesh, innermost first, one of replicas where they are others
  /// than the data-parallel ranks, and the two ends of the pipeline.
  OwnedAxisGroups(const layout::Mesh& mesh, base::Rank rank, const Make& make);

  AxisGroups views() const;
  ProcessGroup& on(layout::Axis axis) const { return views().on(axis); }
  /// For replacing groups by others over the same ranks.
  std::vector<AxisGroup>& all() { return all_; }
  /// Gives a group away.
  std::unique_ptr<ProcessGroup> take(layout::Axis axis);

 private:
  std::vector<AxisGroup> all_;
};

/// Groups of one process that stands in for a rank of the mesh (make_dry_run_group). `moved`: what
/// a group's bytes are added to, or null.
OwnedAxisGroups make_dry_run_groups(
    const layout::Mesh& mesh, base::Rank rank, DryRunData data,
    const std::function<std::size_t*(const AxisGroup&)>& moved = {});

}  // namespace trireme::comm
