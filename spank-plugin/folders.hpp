#pragma once

#include "trireme/base/file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <sys/types.h>

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

/// BASE/jobs/NAME, 0700, the user's. One that exists must be this user's already.
base::Status make_job_folder(const base::File& base, const std::string& name, const Owner& owner);

/// BASE/records/NAME.jsonl, root's, to append to; readable to all.
base::Result<base::File> open_record(const base::File& base, const std::string& name);

/// Empties and removes BASE/jobs/NAME. What is inside goes under the rights of its owner, in a
/// child process.
base::Status remove_job_folder_in(const base::File& base, const std::string& name);

}  // namespace trireme::spank
