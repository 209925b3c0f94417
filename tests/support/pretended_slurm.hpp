// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "support/temporary_folder.hpp"

#include <cstdlib>
#include <fstream>
#include <string>
#include <vector>

namespace trireme::tests {

/// squeue and scontrol, found before Slurm's own: one answers what it was told to, and both write
/// down that they were called.
class PretendedSlurm {
 public:
  PretendedSlurm() : path_(std::getenv("PATH")) {
    const auto folder = folder_.path().string();
    add("squeue", "echo asked >> " + folder + "/asked\ncat " + folder + "/answer\n");
    add("scontrol", "echo \"$@\" >> " + folder + "/changes\n");
    ::setenv("PATH", (folder + ":" + path_).c_str(), 1);
  }
  PretendedSlurm(const PretendedSlurm&) = delete;
  PretendedSlurm& operator=(const PretendedSlurm&) = delete;
  ~PretendedSlurm() { ::setenv("PATH", path_.c_str(), 1); }

  /// Answer of squeue.
  void says(const std::string& answer) const { folder_.write("answer", answer + "\n"); }
  std::size_t times_asked() const { return lines_of("asked").size(); }
  /// The words of each call of scontrol: "update JobId=12 Comment=trireme: step 1/6, loss 4.1".
  std::vector<std::string> changes() const { return lines_of("changes"); }

 private:
  void add(const std::string& name, const std::string& script) const {
    const auto program = folder_.write(name, "#!/bin/sh\n" + script);
    std::filesystem::permissions(program, std::filesystem::perms::owner_all);
  }
  std::vector<std::string> lines_of(const std::string& name) const {
    std::vector<std::string> lines;
    std::ifstream file(folder_.path() / name);
    for (std::string line; std::getline(file, line);) lines.push_back(line);
    return lines;
  }

  TemporaryFolder folder_;
  std::string path_;
};

}  // namespace trireme::tests
