// usage: mpirun -n RANKS bench_comm [COLLECTIVE [BYTES [REPEATS]]]
// Our backends and the MPI library's own collective, turn about in one run.
#include "trireme/base/format.hpp"
#include "trireme/comm/measure.hpp"

#include <cstdio>
#include <cstdlib>

int main(int argc, char** argv) {
  using namespace trireme;
  comm::MpiRuntime mpi;
  const auto code = mpi.run([&] {
    comm::MeasureOptions options;
    if (argc > 1) options.collective = base::value_or_throw(comm::collective_named(argv[1]));
    if (argc > 2) options.bytes = std::strtoull(argv[2], nullptr, 10);
    if (argc > 3) options.repeats = std::atoi(argv[3]);
    for (const auto& result : comm::measure(mpi, options)) {
      if (mpi.world_rank().value() != 0) continue;
      std::puts(base::format("{:<15} {:<8} {} ranks {:>10}  median {:>10}  {:6.2f} GB/s  fastest "
                             "{:6.2f} GB/s",
                             comm::name(result.collective), comm::name(result.backend),
                             result.ranks, base::bytes_text(result.bytes),
                             base::duration_text(result.seconds),
                             static_cast<double>(result.bytes) / result.seconds / 1e9,
                             static_cast<double>(result.bytes) / result.fastest_seconds / 1e9)
                    .c_str());
    }
    return base::ExitCode::done;
  });
  return static_cast<int>(code);
}
