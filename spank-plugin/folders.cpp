#include "folders.hpp"

#include "trireme/base/format.hpp"

#include "node.hpp"

#include <dirent.h>
#include <grp.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

namespace trireme::spank {
namespace {

using base::File;
using base::format;

constexpr int folder_flags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
constexpr int deepest = 64;

base::Failure failed(const std::string& what) {
  return {base::ExitCode::launch, format("{}: {}", what, std::strerror(errno))};
}

/// A folder in a folder of root's, made when it is missing, for root alone to write to.
base::Result<File> root_folder(int parent, const std::string& name, const std::string& shown) {
  if (::mkdirat(parent, name.c_str(), 0755) != 0 && errno != EEXIST) {
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

/// Removes all in an open folder, in as far as this process may.
void empty(File folder, int depth) {
  const int descriptor = folder.release();
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(::fdopendir(descriptor), ::closedir);
  if (!entries) {
    ::close(descriptor);
    return;
  }
  while (const dirent* entry = ::readdir(entries.get())) {
    const std::string name = entry->d_name;
    if (name == "." || name == "..") continue;
    if (::unlinkat(descriptor, name.c_str(), 0) == 0 || depth >= deepest) continue;
    if (auto inner = File::adopt(::openat(descriptor, name.c_str(), folder_flags))) {
      empty(std::move(inner), depth + 1);
      ::unlinkat(descriptor, name.c_str(), AT_REMOVEDIR);
    }
  }
}

/// In a child process: takes the owner's rights for good, then empties.
[[noreturn]] void empty_as(File folder, const struct stat& owner) noexcept {
  const bool root = ::geteuid() == 0 && owner.st_uid != 0;
  if (root && (::setgroups(0, nullptr) != 0 || ::setgid(owner.st_gid) != 0 ||
               ::setuid(owner.st_uid) != 0)) {
    ::_exit(1);
  }
  empty(std::move(folder), 0);
  ::_exit(0);
}

}  // namespace

base::Result<File> open_base(const std::string& path) {
  const auto slash = path.find_last_of('/');
  const auto parent_path = slash == 0 ? std::string("/") : path.substr(0, slash);
  // The parent is the site's own choice (plugstack.conf); links in it are the site's, too.
  const auto parent = File::adopt(::open(parent_path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!parent) return failed(format("cannot open the folder {}", parent_path));
  return root_folder(parent.get(), path.substr(slash + 1), path);
}

base::Status make_job_folder(const File& base, const std::string& name, const Owner& owner) {
  auto jobs = root_folder(base.get(), "jobs", "jobs");
  if (!jobs) return jobs.failure();
  if (::mkdirat(jobs->get(), name.c_str(), 0700) == 0) {
    const auto made = File::adopt(::openat(jobs->get(), name.c_str(), folder_flags));
    if (!made || ::fchown(made.get(), owner.user, owner.group) != 0) {
      return failed(format("cannot give jobs/{} to its user", name));
    }
    return {};
  }
  struct stat facts {};
  if (errno != EEXIST || ::fstatat(jobs->get(), name.c_str(), &facts, AT_SYMLINK_NOFOLLOW) != 0) {
    return failed(format("cannot make the folder jobs/{}", name));
  }
  if (!S_ISDIR(facts.st_mode) || facts.st_uid != owner.user) {
    return base::Failure{base::ExitCode::launch,
                         format("jobs/{} exists and is not this user's (it is left alone); "
                                "remove what an earlier job of this number left",
                                name)};
  }
  return {};
}

base::Result<File> open_record(const File& base, const std::string& name) {
  auto records = root_folder(base.get(), "records", "records");
  if (!records) return records.failure();
  auto record = File::adopt(::openat(records->get(), (name + ".jsonl").c_str(),
                                     O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_CLOEXEC, 0644));
  if (!record) return failed(format("cannot open the record records/{}.jsonl", name));
  return record;
}

base::Status remove_job_folder_in(const File& base, const std::string& name) {
  const auto jobs = File::adopt(::openat(base.get(), "jobs", folder_flags));
  if (!jobs) return {};
  auto folder = File::adopt(::openat(jobs.get(), name.c_str(), folder_flags));
  struct stat owner {};
  if (!folder || ::fstat(folder.get(), &owner) != 0) return {};
  const pid_t child = ::fork();
  if (child < 0) return failed("cannot start a process");
  if (child == 0) empty_as(std::move(folder), owner);
  int status = 0;
  while (::waitpid(child, &status, 0) < 0 && errno == EINTR) {
  }
  if (::unlinkat(jobs.get(), name.c_str(), AT_REMOVEDIR) != 0) {
    return failed(format("cannot remove jobs/{}", name));
  }
  return {};
}

void remove_job_folder(const Settings& settings, std::uint32_t job) {
  const auto base = File::adopt(::open(settings.base.c_str(), folder_flags));
  if (!base) return;
  if (const auto status = remove_job_folder_in(base, format("{}", job)); !status) {
    slurm_error("trireme: %s", status.failure().text.c_str());
  }
}

}  // namespace trireme::spank
