// SPDX-License-Identifier: Apache-2.0
// The newest step that the nodes' folders complete, copied to the shared folder.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/node_tier.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/peer_error.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/load/stored_file.hpp"
#include "checkpoint/save/commit.hpp"
#include "checkpoint/save/step_files.hpp"

#include <algorithm>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Collective. The largest of all ranks' numbers, which are steps or -1.
std::int64_t largest(std::int64_t mine, comm::ProcessGroup& world) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(world.size()));
  constexpr std::int64_t words = sizeof(mine) / sizeof(std::int32_t);
  world.all_gather({&mine, device::DType::i32, {words}},
                   {all.data(), device::DType::i32, {words * world.size()}});
  return *std::max_element(all.begin(), all.end());
}

void largest_each(std::vector<std::int32_t>& values, comm::ProcessGroup& world) {
  world.all_reduce({values.data(), device::DType::i32, {static_cast<std::int64_t>(values.size())}},
                   comm::ReduceOp::max);
}

/// A step of the nodes that is being put together.
class Assembly {
 public:
  Assembly(const NodeTier& tier, std::int64_t step, comm::ProcessGroup& world,
           const ReadAccess& access)
      : tier_(tier), world_(world), access_(access), own_(tier.folder() / step_folder_name(step)) {}

  /// Collective. False unless some node has a manifest and the nodes together every file.
  bool is_complete() {
    read_manifests();
    if (text_.empty()) return false;
    const auto readers = readers_of(std::vector<std::int32_t>(manifest_.files.size(), 1));
    return std::all_of(readers.begin(), readers.end(), [](int rank) { return rank >= 0; });
  }

  /// Collective. False if a file is damaged wherever it is. Throws AgreedError when the folder
  /// cannot be written.
  bool copy_to(const fs::path& temporary) {
    std::vector<std::int32_t> missing(manifest_.files.size(), 1);
    for (;;) {
      const auto readers = readers_of(missing);
      for (std::size_t file = 0; file < missing.size(); ++file) {
        if (missing[file] != 0 && readers[file] < 0) return false;
      }
      // One that could not be copied is tried elsewhere.
      std::vector<std::int32_t> failed(missing.size(), 0);
      comm::agree_after(world_, [&] {
        for (std::size_t file = 0; file < missing.size(); ++file) {
          if (missing[file] != 0 && readers[file] == world_.rank()) {
            failed[file] = is_good(file) ? 0 : 1;
            if (failed[file] == 0) copy_file({}, temporary, own_, manifest_, file);
          }
        }
      });
      largest_each(failed, world_);
      if (std::none_of(failed.begin(), failed.end(), [](auto each) { return each != 0; })) {
        return true;
      }
      missing = std::move(failed);
    }
  }

  const Manifest& manifest() const { return manifest_; }

 private:
  /// The text of the lowest rank whose node has one; nodes with another have another step.
  void read_manifests() {
    std::string mine;
    try {
      mine = manifest_text_of(own_, access_);
      static_cast<void>(base::value_or_throw(manifest_from(own_, mine)));
    } catch (const base::Error& error) {
      mine.clear();
    }
    const auto first = largest(mine.empty() ? -1 : world_.size() - world_.rank(), world_);
    if (first < 0) return;
    const auto text = comm::broadcast_bytes(world_, mine, world_.size() - static_cast<int>(first));
    if (!is_trusted(text)) return;
    text_ = text;
    manifest_ = base::value_or_throw(manifest_from(own_, text_));
    lost_.assign(manifest_.files.size(), mine != text_);
  }

  /// Collective. Rank 0 has the key.
  bool is_trusted(const std::string& text) {
    bool refused = false;
    if (world_.rank() == 0 && !access_.key.empty()) {
      const auto status = check_signature(text, (own_ / "manifest.json").string(), access_.key);
      refused = !status;
      if (refused) base::log::local::warning("checkpoint", "{}", status.failure().text);
    }
    return largest(refused ? 1 : 0, world_) == 0;
  }

  /// Collective. Rank that reads each wanted file, -1 where there is none: on each node that has it
  /// one rank offers itself, the first node's is taken.
  std::vector<int> readers_of(const std::vector<std::int32_t>& wanted) {
    std::vector<std::int32_t> offers(wanted.size(), -1);
    const auto& neighbours = tier_.neighbours(world_.rank());
    for (std::size_t file = 0; file < wanted.size(); ++file) {
      const bool is_mine = file % neighbours.size() == tier_.place_on_node(world_.rank());
      if (wanted[file] == 0 || !is_mine || lost_[file]) continue;
      std::error_code error;
      const auto& stored = manifest_.files[file];
      const auto bytes = fs::file_size(own_ / stored.name, error);
      if (!error && bytes == manifest_.stored_bytes(stored)) {
        offers[file] = world_.size() - world_.rank();
      }
    }
    largest_each(offers, world_);
    std::vector<int> readers;
    for (const auto offer : offers) readers.push_back(offer < 0 ? -1 : world_.size() - offer);
    return readers;
  }

  /// Reads every byte of this node's file; one that is damaged, or cannot be read, is never offered
  /// again.
  bool is_good(std::size_t file) {
    try {
      verify_file(own_, manifest_, file, access_);
      return true;
    } catch (const base::Error& error) {
      base::log::local::warning("checkpoint", "{} (looking for a copy on another node)",
                                error.what());
    }
    lost_[file] = true;
    return false;
  }

  const NodeTier& tier_;
  comm::ProcessGroup& world_;
  const ReadAccess& access_;
  fs::path own_;
  std::string text_;
  Manifest manifest_;
  /// Files that this node does not have as the manifest says.
  std::vector<bool> lost_;
};

/// The newest step of a shared folder that verifies quickly; -1: none.
std::int64_t newest_in(const fs::path& checkpoints) {
  for (const auto& step : list(checkpoints)) {
    if (verify(step.path, VerifyLevel::quick).good()) return step.step;
  }
  return -1;
}

/// The newest step of this node below a bound; -1: none.
std::int64_t newest_below(const NodeTier& tier, std::int64_t bound) {
  for (const auto& step : list(tier.folder())) {
    if (step.step < bound) return step.step;
  }
  return -1;
}

/// Collective. Copies a step that is complete and commits it; none if a file is damaged wherever it
/// is.
std::optional<StepFolder> assemble(Assembly& assembly, const fs::path& checkpoints,
                                   comm::ProcessGroup& world, std::string_view key) {
  auto& files = FileSystem::system();
  auto manifest = assembly.manifest();
  const auto name = comm::broadcast_bytes(world, temporary_name(manifest.step));
  Place place{path_of_save(checkpoints, name)};
  const bool commits = world.rank() == 0;
  const auto remove = [&] {
    if (commits) remove_place(files, place);
  };
  comm::agree_after(world, [&] {
    if (!commits) return;
    place = make_place(files, place.path);
    look_for_step(place);
  });
  try {
    if (!assembly.copy_to(place.path)) {
      remove();
      return std::nullopt;
    }
    comm::agree_after(world, [&] {
      if (!commits) return;
      manifest.folder = folder_of_files(place);
      if (has_master(manifest.contents)) {
        const auto digests = key.empty() ? BlockDigests::none : BlockDigests::sha256;
        manifest.files.push_back(write_master({.digests = digests}, place.path, manifest));
      }
      commit(files, place, manifest.step, manifest_text(manifest, key), nullptr);
    });
  } catch (const comm::AgreedError&) {
    remove();
    throw;
  }
  return StepFolder{checkpoints / step_folder_name(manifest.step), manifest.step};
}

}  // namespace

std::optional<StepFolder> recover(const NodeTier& tier, const fs::path& checkpoints,
                                  comm::ProcessGroup& world, const ReadAccess& access) {
  const auto shared = largest(
      comm::agree_after(world, [&] { return world.rank() == 0 ? newest_in(checkpoints) : -1; }),
      world);
  for (auto bound = std::numeric_limits<std::int64_t>::max();;) {
    const auto step =
        largest(comm::agree_after(world, [&] { return newest_below(tier, bound); }), world);
    if (step <= shared) return std::nullopt;
    Assembly assembly(tier, step, world, access);
    if (assembly.is_complete()) {
      if (auto found = assemble(assembly, checkpoints, world, access.key)) return found;
    }
    if (world.rank() == 0) {
      base::log::local::warning("checkpoint",
                                "step {} of the nodes' own storage cannot be put together from "
                                "these nodes; looking for an older one",
                                step);
    }
    bound = step;
  }
}

}  // namespace trireme::checkpoint
