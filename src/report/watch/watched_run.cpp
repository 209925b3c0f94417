// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/file.hpp"
#include "trireme/report/watch.hpp"
#include "trireme/runtime/run_lock.hpp"

#include "placement.hpp"

namespace trireme::report {

namespace fs = std::filesystem;

WatchedRun::WatchedRun(const fs::path& path) : reader_(telemetry::record_of_run(path)) {
  view_.path = path;
  view_.name = folder_name(path);
}

base::Result<WatchedRun> WatchedRun::open(const fs::path& path) {
  // examine() refuses what is no run directory, in the words of the other commands.
  const telemetry::RunRecord none;
  if (!postmortem::is_run(path)) {
    const auto refused = postmortem::examine(path, {{}, {}, &none});
    if (!refused.ok()) return refused.failure();
  }
  WatchedRun run(path);
  if (auto read = run.advance(); !read.ok()) return read.failure();
  return run;
}

base::Status WatchedRun::advance() {
  // Order: the lock first. A run that ends meanwhile has noted all before it gives the lock back.
  const bool is_held = runtime::living_holder(view_.path).has_value();
  if (auto read = reader_.advance(); !read.ok()) return read.failure();
  state_ = is_held ? State::running : state_of(view_.path, reader_.record());
  if (read_start_ != reader_.record().start_count) read_start();
  return {};
}

void WatchedRun::read_start() {
  read_start_ = reader_.record().start_count;
  view_.values = values_of(view_.path);
  nodes_ = nodes_of(view_.path);
}

}  // namespace trireme::report
