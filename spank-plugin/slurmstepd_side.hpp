// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"
#include "trireme/launch/contract.hpp"
#include "trireme/record/task_record.hpp"

#include "folders.hpp"
#include "plugstack_options.hpp"
#include "spank.hpp"
#include "user_copy.hpp"

#include <string>

namespace trireme::spank {

/// Context S_CTX_REMOTE (slurmstepd) of one step: folders of the job, limits and environment of its
/// tasks, and the record of how they end.
class SlurmstepdSide {
 public:
  /// Constructor for slurmstepd, as root. Failures to make a part are logged, and the part is left
  /// out.
  SlurmstepdSide(const PlugstackOptions& options, launch::Contract contract, spank_t spank);

  void raise_hard_limits() const;
  void prepare_task(spank_t spank) const;
  void record_task(spank_t spank) const;

 private:
  void open_folders(spank_t spank);
  record::MemoryKills memory_kills() const;

  PlugstackOptions options_;
  launch::Contract contract_;
  record::TaskRecord step_;
  User user_;
  std::string folder_;
  std::string record_path_;
  base::File record_;
  record::MemoryKills kills_at_start_;
};

}  // namespace trireme::spank
