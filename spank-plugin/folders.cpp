// SPDX-License-Identifier: Apache-2.0
#include "folders.hpp"

#include "trireme/base/format.hpp"
#include "trireme/launch/system_text.hpp"
#include "trireme/launch/task_variables.hpp"

#include "spank.hpp"

#include <sys/mount.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <ctime>
#include <optional>

namespace trireme::spank {
namespace {

using base::File;
using base::format;

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

base::Failure failed(const std::string& what) {
  return {base::ExitCode::launch, format("{}: {}", what, std::strerror(errno))};
}

/// A folder that others may enter, not list: the names in it are numbers of jobs.
constexpr mode_t unlisted = 0711;

/// A folder in a folder of root's, made when it is missing, for root alone to write to.
base::Result<File> root_folder(int parent, const std::string& name, const std::string& shown,
                               mode_t mode = unlisted) {
  if (::mkdirat(parent, name.c_str(), mode) != 0 && errno != EEXIST) {
    return failed(format("cannot make the folder {}", shown));
  }
  auto folder = File::adopt(::openat(parent, name.c_str(), folder_flags));
  struct stat facts {};
  if (!folder || ::fstat(folder.get(), &facts) != 0) {
    return failed(format("cannot open the folder {}", shown));
  }
  if (facts.st_uid != ::geteuid() || (facts.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return base::Failure{base::ExitCode::launch,
                         format("the folder {} is not root's alone (others could redirect what "
                                "is written there); chown root and chmod 0755, or choose "
                                "another with base= in plugstack.conf",
                                shown)};
  }
  return folder;
}

/// Lock under which one step at a time makes folders of jobs. Only root may open the file: any
/// process that could open it could keep its lock. Fails after `patience` tries.
base::Result<File> making_lock(const File& base) {
  constexpr int patience = 100;
  auto file = File::adopt(
      ::openat(base.get(), "making.lock", O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file) return failed("cannot open the file making.lock");
  struct flock whole {};
  whole.l_type = F_WRLCK;
  constexpr timespec pause{0, 20'000'000};
  for (int tries = 0; tries < patience; ++tries) {
    if (::fcntl(file.get(), F_OFD_SETLK, &whole) == 0) return file;
    ::nanosleep(&pause, nullptr);
  }
  return failed("cannot lock the file making.lock");
}

/// Kernel's name of an open file, whatever path led to it.
std::string link_of(const File& file) {
  return format("/proc/self/fd/{}", file.get());
}

std::string whole_text(const char* path) {
  const auto file = File::adopt(::open(path, O_RDONLY | O_CLOEXEC));
  std::string text;
  char piece[4096];
  for (;;) {
    const auto count = file ? ::read(file.get(), piece, sizeof piece) : 0;
    if (count <= 0) return text;
    text.append(piece, static_cast<std::size_t>(count));
  }
}

/// The source of what is mounted at a name in an open folder; none where nothing is. Read from the
/// system's table, because a file system that a user has mounted there need not answer.
std::optional<std::string> mounted_at(const File& folder, const std::string& name) {
  char path[PATH_MAX] = {};
  const auto length = ::readlink(link_of(folder).c_str(), path, sizeof path - 1);
  if (length <= 0) return std::nullopt;
  return launch::mount_source_in(whole_text("/proc/self/mountinfo"), format("{}/{}", path, name));
}

/// Unmounts every file system on a path in a folder of root's. A detached file system is
/// inaccessible by that path at once, whatever it holds; its memory is freed when its last user
/// ends.
void detach(const char* path) {
  // Several layers: a user may have mounted file systems over it, as fusermount permits.
  constexpr int most = 4096;
  for (int count = 0; count < most; ++count) {
    if (::umount2(path, MNT_DETACH | UMOUNT_NOFOLLOW) != 0) return;
  }
}

/// Runs `work` in a child process and waits so many seconds for it at most: a file system of a
/// user's can block in the kernel.
template <typename Work>
base::Status within(int seconds, const Work& work) {
  const pid_t child = ::fork();
  if (child < 0) return failed("cannot start a process");
  if (child == 0) {
    work();
    ::_exit(0);
  }
  constexpr timespec pause{0, 5'000'000};
  for (int tries = 0; tries < seconds * 200; ++tries) {
    const auto ended = ::waitpid(child, nullptr, WNOHANG);
    if (ended == child || (ended < 0 && errno != EINTR)) return {};
    ::nanosleep(&pause, nullptr);
  }
  ::kill(child, SIGKILL);
  return base::Failure{base::ExitCode::launch,
                       format("a file system mounted there does not let go within {} s", seconds)};
}

}  // namespace

base::Result<File> open_base(const std::string& path) {
  const auto slash = path.find_last_of('/');
  const auto parent_path = slash == 0 ? std::string("/") : path.substr(0, slash);
  // The parent is the site's own choice (plugstack.conf); links in it are the site's, too.
  const auto parent = File::adopt(::open(parent_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return failed(format("cannot open the folder {}", parent_path));
  return root_folder(parent.get(), path.substr(slash + 1), path, 0755);
}

base::Status make_job_folder(const File& base, const std::string& name, const Owner& owner) {
  if (::geteuid() != 0) {
    return base::Failure{base::ExitCode::launch,
                         "folders of jobs need a slurmd that runs as root (they are mounted)"};
  }
  const auto jobs = root_folder(base.get(), "jobs", "jobs");
  if (!jobs) return jobs.failure();
  const auto lock = making_lock(base);
  if (!lock) return lock.failure();
  const auto source = format("trireme-{}", owner.user);
  if (const auto found = mounted_at(*jobs, name)) {
    if (*found == source) return {};
    return base::Failure{base::ExitCode::launch,
                         format("jobs/{} exists and is not this user's (it is left alone); unmount "
                                "what an earlier job of this number left",
                                name)};
  }
  // Order: the folder is empty and root's between mkdir and mount, so that an interruption here
  // leaves no half-made state.
  if (::mkdirat(jobs->get(), name.c_str(), 0700) != 0 && errno != EEXIST) {
    return failed(format("cannot make the folder jobs/{}", name));
  }
  const auto place = File::adopt(
      ::openat(jobs->get(), name.c_str(), O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  const auto options =
      format("{},uid={},gid={}", launch::job_folder_limits, owner.user, owner.group);
  if (!place || ::mount(source.c_str(), link_of(place).c_str(), "tmpfs", MS_NOSUID | MS_NODEV,
                        options.c_str()) != 0) {
    return failed(format("cannot mount jobs/{}", name));
  }
  return {};
}

base::Result<File> open_record(const File& base, const std::string& name, gid_t reader) {
  auto records = root_folder(base.get(), "records", "records");
  if (!records) return records.failure();
  auto record = File::adopt(::openat(records->get(), (name + ".jsonl").c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!record) return failed(format("cannot open the record records/{}.jsonl", name));
  const bool root = ::geteuid() == 0;
  if ((root && ::fchown(record.get(), 0, reader) != 0) || ::fchmod(record.get(), 0640) != 0) {
    return failed(format("cannot give the record records/{}.jsonl to its reader", name));
  }
  return record;
}

base::Status remove_job_folder_in(const File& base, const std::string& name) {
  constexpr int patience_seconds = 10;
  const auto jobs = File::adopt(::openat(base.get(), "jobs", folder_flags));
  if (!jobs) return {};
  const auto path = format("{}/{}", link_of(jobs), name);
  auto detached = within(patience_seconds, [&path] { detach(path.c_str()); });
  if (::unlinkat(jobs.get(), name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT) {
    return failed(format("cannot remove jobs/{}", name));
  }
  return detached;
}

void remove_job_folder(const PlugstackOptions& options, std::uint32_t job) {
  const auto base = File::adopt(::open(options.base.c_str(), folder_flags));
  if (!base) return;
  if (const auto status = remove_job_folder_in(base, format("{}", job)); !status) {
    slurm_error("trireme: jobs/%u: %s", job, status.failure().text.c_str());
  }
}

}  // namespace trireme::spank
