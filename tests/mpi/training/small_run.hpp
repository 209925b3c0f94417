// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/process_group.hpp"
#include "trireme/train/trainer.hpp"

#include "support/forwarding_kernels.hpp"
#include "support/temporary_folder.hpp"

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace trireme::testing {

/// The cpu backend; what derives from it lets something happen in the middle of a run.
class CpuKernels : public ForwardingKernels {
 public:
  CpuKernels() : ForwardingKernels(device::make_cpu_kernels(1)) {}
};

/// A folder of all ranks with data, made and removed by the first.
class RunFolder {
 public:
  RunFolder();
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  ~RunFolder() { wait(); }

  const std::filesystem::path& path() const { return path_; }
  void wait() { world_->barrier(); }

 private:
  std::unique_ptr<comm::ProcessGroup> world_;
  std::optional<tests::TemporaryFolder> folder_;
  std::filesystem::path path_;
};

/// Micro-batches of a step of small_config(), of one sequence each.
inline constexpr int small_micro_batches = 4;
/// Six steps of a tiny gpt2 in a few milliseconds each; the ranks are its pipeline stages. `more`
/// goes over what it sets.
config::Config small_config(const RunFolder& folder, const std::filesystem::path& run,
                            const std::vector<std::string>& more = {});

/// How a run ends: its exit code, and its last words if it failed.
struct RunEnd {
  base::ExitCode code = base::ExitCode::done;
  std::string text;
};

/// A whole start of a run. `environment` is that of a job whose comment the run keeps.
RunEnd run_to_end(const config::Config& config, std::unique_ptr<device::Kernels> kernels,
                  train::StartOptions start = {}, const base::Environment& environment = {});

/// Steps of metrics.jsonl's lines of a kind, or of an event.
std::vector<std::int64_t> steps_of(const std::filesystem::path& run, const std::string& what);

}  // namespace trireme::testing
