// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/device/device.hpp"

#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace trireme::comm {

enum class Collective {
  all_reduce,
  reduce_scatter,
  all_gather,
  all_to_all,
  broadcast,
  send_receive  ///< every rank sends to the next and receives from the one before
};
/// "all_reduce", "reduce_scatter"…
const char* name(Collective collective);
/// Value of a name as name() gives it, or "auto", "mpi", "shared", "library".
base::Result<Collective> collective_named(std::string_view name);
base::Result<Backend> backend_named(std::string_view name);

struct MeasureOptions {
  Collective collective = Collective::all_reduce;
  /// Size of the whole array on one rank; rounded down to whole numbers for each rank, at least
  /// one.
  std::size_t bytes = std::size_t{16} << 20;
  /// f32 or bf16.
  device::DType dtype = device::DType::f32;
  /// Backends, measured alternately, so that a busy machine disturbs all alike.
  std::vector<Backend> backends{Backend::shared, Backend::mpi, Backend::library};
  int repeats = 30;
  double timeout_seconds = 600;
};

/// Factor from the whole array's bytes per second to the rate at which the slowest link of any
/// algorithm must move data, as nccl-tests defines it ("busbw", doc/PERFORMANCE.md there): 2 (n -
/// 1) / n for an all-reduce, (n - 1) / n where each rank keeps or contributes its own part, 1 for a
/// broadcast and for messages.
double bus_factor(Collective collective, int ranks);

struct Measurement {
  Collective collective;
  /// Backend that was used: "shared", "mpi", "library", "staged", "nccl", or "local" for one rank.
  std::string backend;
  /// Size of the group.
  int ranks;
  /// Size of the whole array on one rank.
  std::size_t bytes;
  /// Median and fastest over repeats, of the slowest rank in each.
  double seconds;
  double fastest_seconds;

  /// Bytes a second of the whole array, and of the bus: algbw and busbw of nccl-tests.
  double algorithm_rate() const { return static_cast<double>(bytes) / seconds; }
  double bus_rate() const { return algorithm_rate() * bus_factor(collective, ranks); }
};

/// Collective over the world; the same answer on every rank, one for each backend. Every result is
/// compared with the expected one: a wrong one ends in base::Error (ExitCode::peer).
std::vector<Measurement> measure(MpiRuntime& mpi, const MeasureOptions& options);

/// Measurement of existing groups, which have the same members and take tensors of `device`; the
/// options' backends are ignored. Collective over `meeting` (host memory), which all groups of one
/// axis share, so that they run at once, as in training: the slowest of all ranks counts.
std::vector<Measurement> measure(ProcessGroup& meeting, device::Device& device,
                                 const std::vector<std::unique_ptr<ProcessGroup>>& groups,
                                 const MeasureOptions& options);

}  // namespace trireme::comm
