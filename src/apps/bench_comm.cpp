// trireme bench comm
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/comm/measure.hpp"
#include "trireme/config/value.hpp"

#include "apps/commands.hpp"
#include "apps/on_ranks.hpp"

#include <unistd.h>

#include <memory>

namespace trireme::apps {
namespace {

using base::format;

struct CommOptions {
  std::vector<std::string> collectives{"all_reduce"};
  std::vector<std::string> sizes{"16MiB"};
  std::vector<std::string> backends{"auto"};
  std::string precision = "fp32";
  int repeats = 30;
  double timeout_seconds = 600;
  bool json = false;
};

/// What to measure, one set of turns after another.
std::vector<comm::MeasureOptions> measurements_of(const CommOptions& options) {
  comm::MeasureOptions measured;
  measured.dtype = options.precision == "bf16" ? device::DType::bf16 : device::DType::f32;
  measured.repeats = options.repeats;
  measured.timeout_seconds = options.timeout_seconds;
  measured.backends.clear();
  for (const auto& name : options.backends) {
    measured.backends.push_back(base::value_or_throw(comm::backend_named(name)));
  }
  std::vector<comm::MeasureOptions> all;
  for (const auto& name : options.collectives) {
    measured.collective = base::value_or_throw(comm::collective_named(name));
    for (const auto& size : options.sizes) {
      const auto bytes = config::parse_bytes(size);
      if (!bytes.ok() || *bytes < 4) {
        throw base::Error(base::usage_failure(
            format("--bytes {} is not the size of an array ({}); try --bytes 16MiB", size,
                   bytes.ok() ? "one number has 4 bytes" : bytes.failure().text)));
      }
      measured.bytes = static_cast<std::size_t>(*bytes);
      all.push_back(measured);
    }
  }
  return all;
}

/// Every rank of the node holds two arrays.
void check_memory(const std::vector<comm::MeasureOptions>& all, int local_ranks) {
  const auto memory = static_cast<std::size_t>(::sysconf(_SC_PHYS_PAGES)) *
                      static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
  const auto most = memory / 2 / static_cast<std::size_t>(local_ranks);
  for (const auto& each : all) {
    if (each.bytes <= most) continue;
    throw base::Error(base::usage_failure(
        format("--bytes {} is too much (each of the node's {} ranks holds two such arrays, and the "
               "node has {}); use {} or less",
               each.bytes, local_ranks, base::bytes_text(memory), most)));
  }
}

void write_result(Context& context, const comm::Measurement& result, bool json) {
  const double rate = static_cast<double>(result.bytes) / result.seconds;
  if (json) {
    const base::Json line{{"collective", comm::name(result.collective)},
                          {"backend", result.backend},
                          {"ranks", result.ranks},
                          {"bytes", result.bytes},
                          {"seconds", result.seconds},
                          {"bytes_per_second", rate}};
    context.out.write(line.dump() + "\n");
  } else {
    context.out.write(format("{:<15} {:<8} {:>5} {:>11} {:>11} {:>10.3f} GB/s {:>11}\n",
                             comm::name(result.collective), result.backend, result.ranks,
                             base::bytes_text(result.bytes), base::duration_text(result.seconds),
                             rate * 1e-9, base::duration_text(result.fastest_seconds)));
  }
  context.out.flush();
}

base::ExitCode run_comm(const CommOptions& options, Context& context) {
  const auto all = measurements_of(options);
  check_memory(all, 1);
  return run_on_ranks(context, [&](comm::MpiRuntime& mpi) {
    check_memory(all, mpi.local_size());
    const bool speaks = mpi.world_rank().value() == 0;
    if (speaks && !options.json) {
      context.out.write(format("{:<15} {:<8} {:>5} {:>11} {:>11} {:>15} {:>11}\n", "collective",
                               "backend", "ranks", "array", "median", "array / median", "fastest"));
    }
    for (const auto& each : all) {
      for (const auto& result : comm::measure(mpi, each)) {
        if (speaks) write_result(context, result, options.json);
      }
    }
    return base::ExitCode::done;
  });
}

Action prepare_comm(CLI::App& app) {
  auto options = std::make_shared<CommOptions>();
  app.add_option("--collective", options->collectives,
                 "all_reduce, reduce_scatter, all_gather, broadcast, send_receive, all_to_all; "
                 "several with commas")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->default_str("all_reduce");
  app.add_option("--bytes", options->sizes,
                 "Size of the whole array on one rank; several with commas")
      ->type_name("SIZE,...")
      ->delimiter(',')
      ->default_str("16MiB");
  app.add_option("--backend", options->backends,
                 "auto, shared, mpi or library (the MPI library's own); several take turns")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->default_str("auto");
  app.add_option("--precision", options->precision, "Numbers in the array: fp32 or bf16")
      ->type_name("TYPE")
      ->check(CLI::IsMember({"fp32", "bf16"}).description(""));
  app.add_option("--repeats", options->repeats, "Measurements of each")
      ->type_name("N")
      ->check(CLI::Range(1, 1'000'000).description(""));
  app.add_option("--timeout", options->timeout_seconds, "Seconds that any wait may last")
      ->type_name("SECONDS")
      ->check(CLI::Range(0.001, 1e9).description(""));
  app.add_flag("--json", options->json, "One JSON object a line for each result");
  return [options](Context& context) { return run_comm(*options, context); };
}

}  // namespace

Command bench_comm_command() {
  return {.name = "comm",
          .summary = "Times collectives between the ranks, each result checked",
          .details =
              "Start it on the ranks to measure: mpirun -n 2 trireme bench comm --backend "
              "shared,library. Times are medians of the slowest rank; a rate is the bytes of "
              "the whole array on one rank over that, whatever a backend moves for it. "
              "send_receive: each rank sends its array to the next one and receives that of the "
              "one before. Backends take turns in one run, so that neighbours disturb all "
              "alike. All inputs are numbers whose sums are exact, and every result is compared "
              "with the one that is due.",
          .prepare = prepare_comm};
}

}  // namespace trireme::apps
