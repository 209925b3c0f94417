#pragma once

#include "trireme/comm/mpi_runtime.hpp"

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
/// From such a name, or "auto", "mpi", "shared", "library".
base::Result<Collective> collective_named(std::string_view name);
base::Result<Backend> backend_named(std::string_view name);

struct MeasureOptions {
  Collective collective = Collective::all_reduce;
  /// Of the whole array on one rank; rounded down to whole numbers for each rank, at least one.
  std::size_t bytes = std::size_t{16} << 20;
  /// f32 or bf16.
  device::DType dtype = device::DType::f32;
  /// Measured turn about, so that a busy machine disturbs all alike.
  std::vector<Backend> backends{Backend::shared, Backend::mpi, Backend::library};
  int repeats = 30;
  double timeout_seconds = 600;
};

struct Measurement {
  Collective collective;
  /// What served: "shared", "mpi", "library", or "local" in a world of one.
  std::string backend;
  int ranks;
  /// Of the whole array on one rank.
  std::size_t bytes;
  /// Median and fastest over repeats, of the slowest rank in each.
  double seconds;
  double fastest_seconds;
};

/// Collective over the world; the same answer on every rank, one for each backend. Every result
/// is compared with the one that is due: a wrong one ends in base::Error (ExitCode::peer).
std::vector<Measurement> measure(MpiRuntime& mpi, const MeasureOptions& options);

}  // namespace trireme::comm
