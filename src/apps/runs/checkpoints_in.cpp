// SPDX-License-Identifier: Apache-2.0
#include "apps/runs/checkpoints_in.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"

namespace trireme::apps {

postmortem::Checkpoints checkpoints_in(const std::filesystem::path& run) {
  postmortem::Checkpoints found;
  try {
    const auto steps = checkpoint::list(checkpoint::checkpoints_of_run(run));
    found.count = steps.size();
    for (const auto& step : steps) {
      const auto report = checkpoint::verify(step.path, checkpoint::VerifyLevel::quick);
      if (report.good()) {
        found.newest_usable = step.step;
        break;
      }
      found.notes.push_back(
          base::format("step {} is not usable: {}", step.step, report.damages.front().text));
    }
  } catch (const base::Error& failed) {
    found.notes.push_back(base::format("its checkpoints are not known: {}", failed.what()));
  }
  return found;
}

}  // namespace trireme::apps
