// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/node_tier.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/base/path.hpp"
#include "trireme/base/text.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <map>
#include <system_error>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

[[noreturn]] void throw_no_folder(const fs::path& folder, int error_number) {
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("cannot make '{}' on this node: {} (nothing can be saved there); "
                                 "set checkpoint.local_directory to a folder in which this user "
                                 "may make others on each node",
                                 folder.string(), std::strerror(error_number)));
}

/// Makes the folder for this user alone. One that is there must be: in a place where everybody may
/// write, another user could have made it, and would own the run's state.
void make_private_folder(const fs::path& folder) {
  if (::mkdir(folder.c_str(), 0700) != 0 && errno != EEXIST) {
    throw_no_folder(folder, errno);
  }
  struct stat facts {};
  if (::lstat(folder.c_str(), &facts) != 0) throw_storage_error("examine", folder, errno);
  if (S_ISDIR(facts.st_mode) && facts.st_uid == ::geteuid() && (facts.st_mode & 077) == 0) return;
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("'{}' is no folder of this user alone (mode 0700): what others may change there "
                   "would be loaded; remove it, or choose another checkpoint.local_directory",
                   folder.string()));
}

/// Begin of the names of a run's folders.
std::string prefix_of(const fs::path& run) {
  std::error_code error;
  auto place = fs::weakly_canonical(run, error);
  if (error) place = base::absolute(run);
  return base::format("trireme-{:016x}-", base::Fnv1a().add(place.string()).value());
}

/// Folders with such names; none where there is no such place.
std::vector<fs::path> folders_of(const fs::path& local, const std::string& prefix,
                                 std::error_code& error) {
  std::vector<fs::path> folders;
  for (fs::directory_iterator at(local, error), end; !error && at != end; at.increment(error)) {
    if (at->path().filename().string().starts_with(prefix)) folders.push_back(at->path());
  }
  return folders;
}

void remove_others(const fs::path& local, const std::string& prefix, const std::string& name) {
  std::error_code error;
  for (const auto& other : folders_of(local, prefix, error)) {
    if (other.filename() == name) continue;
    fs::remove_all(other, error);
    if (!error) {
      base::log::local::info("checkpoint", "removed '{}', of an earlier run in the same place",
                             other.string());
    }
  }
}

}  // namespace

NodeTier::NodeTier(fs::path folder, const std::vector<int>& node_of_rank, int copies)
    : folder_(std::move(folder)), place_(node_of_rank.size()) {
  std::map<int, std::size_t> numbers;
  for (std::size_t rank = 0; rank < node_of_rank.size(); ++rank) {
    const auto [at, is_new] = numbers.emplace(node_of_rank[rank], nodes_.size());
    if (is_new) nodes_.emplace_back();
    auto& members = nodes_[at->second];
    place_[rank] = {at->second, members.size()};
    members.push_back(static_cast<int>(rank));
  }
  copies_ = std::min(copies, static_cast<int>(nodes_.size()) - 1);
}

std::vector<int> NodeTier::holders(int rank) const {
  const auto [node, member] = place_[index(rank)];
  std::vector<int> ranks;
  for (std::size_t next = 1; next <= static_cast<std::size_t>(copies_); ++next) {
    const auto& members = nodes_[(node + next) % nodes_.size()];
    ranks.push_back(members[member % members.size()]);
  }
  return ranks;
}

std::vector<int> NodeTier::owners(int rank) const {
  const auto [node, member] = place_[index(rank)];
  const auto size = nodes_[node].size();
  std::vector<int> ranks;
  for (std::size_t back = 1; back <= static_cast<std::size_t>(copies_); ++back) {
    const auto& members = nodes_[(node + nodes_.size() - back) % nodes_.size()];
    for (auto at = member; at < members.size(); at += size) ranks.push_back(members[at]);
  }
  std::sort(ranks.begin(), ranks.end());
  return ranks;
}

fs::path open_node_folder(const fs::path& local, const fs::path& run, std::string_view id,
                          bool makes) {
  const auto prefix = prefix_of(run);
  const auto name = base::format("{}{}", prefix, id);
  if (makes) {
    std::error_code error;
    fs::create_directories(local, error);
    if (error) throw_no_folder(local, error.value());
    remove_others(local, prefix, name);
    make_private_folder(local / name);
  }
  return local / name;
}

std::vector<fs::path> forget_node_folders(const fs::path& local, const fs::path& run) {
  std::error_code error;
  const auto folders = folders_of(local, prefix_of(run), error);
  if (error && error != std::errc::no_such_file_or_directory) {
    throw_storage_error("list", local, error.value());
  }
  for (const auto& folder : folders) {
    fs::remove_all(folder, error);
    if (!error) continue;
    throw base::Error(
        base::ExitCode::checkpoint,
        base::format("cannot remove '{}': {}; its owner can", folder.string(), error.message()));
  }
  return folders;
}

std::size_t copied_bytes(const NodeTier& tier, const Contents& contents, int rank) {
  std::size_t bytes = 0;
  for (const auto owner : tier.owners(rank)) {
    bytes += contents.bytes_in_file(static_cast<std::size_t>(owner));
  }
  return bytes;
}

void keep_on_node(const NodeTier& tier, const std::function<bool(std::int64_t step)>& is_kept) {
  auto& files = FileSystem::system();
  try {
    auto doomed = list_uncommitted(tier.folder());
    for (auto& step : list(tier.folder())) {
      if (!is_kept(step.step)) doomed.push_back(std::move(step));
    }
    for (const auto& step : doomed) {
      if (files.remove_folder(step.path) != 0) throw_storage_error("remove", step.path, errno);
    }
  } catch (const base::Error& error) {
    base::log::local::warning("checkpoint", "old steps stay on this node: {}", error.what());
  }
}

}  // namespace trireme::checkpoint
