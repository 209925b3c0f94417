// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/format.hpp"
#include "trireme/postmortem/postmortem.hpp"

#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <fstream>

namespace trireme::tests {

/// 2026-11-21 09:37:00 UTC.
inline constexpr std::int64_t minute = 1795253820;

/// A run directory made by hand.
class HandMadeRun {
 public:
  HandMadeRun() { std::filesystem::create_directories(path() / "log"); }
  std::filesystem::path path() const { return folder_.path() / "run"; }

  void write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((path() / name).parent_path());
    std::ofstream(path() / name, std::ios::app) << text;
  }
  /// A line of a rank's log at so many seconds after 09:37.
  void say(int rank, double second, const std::string& level, const std::string& text,
           int ranks = 4) const {
    write(base::format("log/r{:04}.txt", rank),
          base::format("2026-11-21T09:37:{:06.3f}Z {:<7} r{:04}/{:04} n{} {}\n", second, level,
                       rank, ranks, rank / 2, text));
  }
  void start(int rank, double second, int task) const {
    say(rank, second, "debug",
        base::format("runtime: rank {} is task {} of srun in job 12.0; CPUs 0-3 (why)", rank,
                     task));
  }
  void step(int number, double loss) const {
    write("metrics.jsonl",
          base::format("{{\"kind\":\"train\",\"step\":{},\"loss\":{}}}\n", number, loss));
  }
  void event(const std::string& name) const {
    write("metrics.jsonl", base::format("{{\"kind\":\"event\",\"event\":\"{}\"}}\n", name));
  }
  postmortem::Postmortem postmortem(const postmortem::SlurmView& slurm = {},
                                    const postmortem::Checkpoints& checkpoints = {}) const {
    auto told = postmortem::examine(
        path(), {{}, slurm, nullptr, [&](const std::filesystem::path&) { return checkpoints; }});
    REQUIRE(told.ok());
    return std::move(told).value();
  }

 private:
  TemporaryFolder folder_;
};

}  // namespace trireme::tests
