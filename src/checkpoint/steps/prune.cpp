// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/output_file.hpp"
#include "trireme/checkpoint/retention.hpp"
#include "trireme/checkpoint/state_names.hpp"
#include "trireme/store/object_store.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/objects/objects.hpp"
#include "checkpoint/steps/hold.hpp"

#include <algorithm>
#include <cerrno>
#include <set>
#include <utility>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

/// Steps of the lowest losses; of two that are alike, the newer.
std::set<std::int64_t> best_of(const std::vector<StepFolder>& steps, int count) {
  std::set<std::int64_t> best;
  if (count <= 0) return best;
  std::vector<std::pair<double, std::int64_t>> losses;
  for (const auto& step : steps) {
    const auto manifest = read_manifest(step.path);
    if (!manifest.ok()) continue;
    if (const auto loss = validation_loss(*manifest)) losses.emplace_back(*loss, -step.step);
  }
  std::sort(losses.begin(), losses.end());
  for (const auto& [loss, negated] : losses) {
    if (best.size() == static_cast<std::size_t>(count)) break;
    best.insert(-negated);
  }
  return best;
}

bool is_tagged(const StepFolder& step) {
  const auto all = tags(step.path.parent_path());
  return std::any_of(all.begin(), all.end(),
                     [&step](const Tag& tag) { return tag.step == step.step; });
}

/// Removal in two steps, so that a half-removed step no longer has a step's name. False if it is
/// being read, or has got a tag before it lost its name.
bool remove_step(const StepFolder& step, FileSystem& files) {
  if (store::is_url(step.path)) {
    if (is_tagged(step)) return false;
    objects::remove_step(step.path);
    return true;
  }
  const auto folder = step.path.parent_path();
  const auto doomed = folder / temporary_name(step.step);
  if (files.rename(step.path, doomed) != 0) throw_storage_error("remove", step.path, errno);
  if (is_tagged(step) || is_held(doomed)) {
    if (files.rename(doomed, step.path) != 0) throw_storage_error("rename", doomed, errno);
    return false;
  }
  sync_folder(files, folder);
  if (files.remove_folder(doomed) != 0) throw_storage_error("remove", doomed, errno);
  return true;
}

}  // namespace

std::vector<StepFolder> steps_to_prune(const fs::path& checkpoints, const Retention& retention,
                                       std::optional<std::int64_t> current) {
  auto steps = list(checkpoints);
  std::erase_if(steps, [&](const StepFolder& step) { return current && step.step > *current; });
  auto stays = best_of(steps, retention.keep_best);
  for (const auto& tag : tags(checkpoints)) stays.insert(tag.step);
  if (current) stays.insert(*current);
  if (retention.loaded) stays.insert(*retention.loaded);
  const int keep = std::max(retention.keep_last, 1);
  int kept = 0;
  std::vector<StepFolder> doomed;
  for (const auto& step : steps) {
    if (kept < keep) {
      if (step.step == current || verify(step.path, VerifyLevel::quick).good()) ++kept;
    } else if (!stays.contains(step.step) &&
               (retention.keep_every == 0 || step.step % retention.keep_every != 0)) {
      doomed.push_back(step);
    }
  }
  return doomed;
}

std::vector<fs::path> prune(const fs::path& checkpoints, const Retention& retention,
                            std::optional<std::int64_t> current, FileSystem& files) {
  std::vector<fs::path> removed;
  for (const auto& step : steps_to_prune(checkpoints, retention, current)) {
    if (remove_step(step, files)) removed.push_back(step.path);
  }
  return removed;
}

}  // namespace trireme::checkpoint
