// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/report/run_view.hpp"

#include "support/temporary_folder.hpp"

#include <filesystem>
#include <fstream>
#include <string>

namespace trireme::tests {

/// Run directories made by hand, in a folder of their own.
class HandMadeRuns {
 public:
  std::filesystem::path folder() const { return folder_.path(); }
  std::filesystem::path path(const std::string& run) const { return folder_.path() / run; }

  void write(const std::string& run, const std::string& file, const std::string& text) const {
    std::filesystem::create_directories((path(run) / file).parent_path());
    std::ofstream(path(run) / file, std::ios::app) << text;
  }
  void configure(const std::string& run, const std::string& text) const {
    write(run, "config.resolved.conf", text);
  }
  /// `more`: further members.
  void start(const std::string& run, int step = 1, const std::string& more = "") const {
    write(run, "metrics.jsonl",
          base::format("{{\"kind\":\"event\",\"event\":\"start\",\"step\":{},\"parameters\":1000,"
                       "\"peak_flops\":2e12,\"peak_source\":\"its data sheet\",\"time\":"
                       "\"2026-11-21T09:37:00.000Z\"{}}}\n",
                       step, more));
  }
  void event(const std::string& run, const std::string& name, int step) const {
    write(run, "metrics.jsonl",
          base::format("{{\"kind\":\"event\",\"event\":\"{}\",\"step\":{},\"time\":"
                       "\"2026-11-21T09:37:59.000Z\"}}\n",
                       name, step));
  }
  /// `more`: further members, ",\"bubble_ms\":3".
  void step(const std::string& run, int number, double loss, const std::string& more = "") const {
    write(run, "metrics.jsonl",
          base::format("{{\"kind\":\"train\",\"step\":{},\"loss\":{},\"tokens\":{},"
                       "\"time\":\"2026-11-21T09:37:30.000Z\"{}}}\n",
                       number, loss, 100 * number, more));
  }
  report::RunView view(const std::string& run) const {
    const auto where = path(run);
    return base::value_or_throw(report::read_runs({&where, 1})).front();
  }

 private:
  TemporaryFolder folder_;
};

inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace trireme::tests
