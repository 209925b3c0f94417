// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/file.hpp"

#include "plugstack_options.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

/// Folders that root makes for jobs. No path that a user could have changed is ever followed:
/// every step goes from an open folder of root's to a name in it, and no link is followed.
namespace trireme::spank {

struct Owner {
  uid_t user = 0;
  gid_t group = 0;
};

/// The site's folder, made when it is missing; refused unless root alone can write to it.
base::Result<base::File> open_base(const std::string& path);

/// Makes BASE/jobs/NAME, 0700, the user's: a tmpfs of its own with limits
/// (launch::job_folder_limits), so that it cannot fill up the node, and is removed as a whole. An
/// existing one must be this user's already. Needs root.
base::Status make_job_folder(const base::File& base, const std::string& name, const Owner& owner);

/// BASE/records/NAME.jsonl, root's, to append to; 0640, readable to the group `reader`.
base::Result<base::File> open_record(const base::File& base, const std::string& name, gid_t reader);

/// Detaches and removes BASE/jobs/NAME. Nothing in it is opened or walked through, and no process
/// of its owner is waited for longer than some seconds. Files that a process still uses are freed
/// when it ends.
base::Status remove_job_folder_in(const base::File& base, const std::string& name);

/// Removes the folder of a job of this site, in the epilog, as root. Failures are logged.
void remove_job_folder(const PlugstackOptions& options, std::uint32_t job);

}  // namespace trireme::spank
