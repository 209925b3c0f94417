#pragma once

#include "trireme/base/file.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/launch/task_record.hpp"

#include "folders.hpp"
#include "site.hpp"
#include "spank.hpp"
#include "user_copy.hpp"

#include <string>

namespace trireme::spank {

/// The node's side of one step: folders of the job, limits and environment of its tasks, and the
/// record of how they end.
class Node {
 public:
  /// As root, in slurmstepd. What cannot be made is reported and left out.
  Node(const Settings& settings, launch::Contract contract, spank_t spank);

  void raise_hard_limits() const;
  void prepare_task(spank_t spank) const;
  void record_task(spank_t spank) const;

 private:
  void open_folders(spank_t spank);
  launch::MemoryKills memory_kills() const;

  Settings settings_;
  launch::Contract contract_;
  launch::TaskRecord step_;
  User user_;
  std::string folder_;
  std::string record_path_;
  base::File record_;
  launch::MemoryKills kills_at_start_;
};

/// In the epilog, as root: takes the job's folder off this node.
void remove_job_folder(const Settings& settings, std::uint32_t job);

}  // namespace trireme::spank
