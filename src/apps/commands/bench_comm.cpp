// SPDX-License-Identifier: Apache-2.0
// trireme bench comm
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/comm/measure.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/schema/value.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"
#include "apps/cli/shared_options.hpp"
#include "apps/commands/bench_groups.hpp"

#include <unistd.h>

#include <algorithm>
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
  BenchAxis axis;
};

/// Measurements to make, one after another.
std::vector<comm::MeasureOptions> measurements_of(const CommOptions& options) {
  comm::MeasureOptions measured;
  measured.dtype = options.precision == "bf16" ? device::DType::bf16 : device::DType::f32;
  measured.repeats = options.repeats;
  measured.timeout_seconds = options.timeout_seconds;
  std::vector<comm::MeasureOptions> all;
  for (const auto& name : options.collectives) {
    measured.collective = base::value_or_throw(comm::collective_named(name));
    for (const auto& size : options.sizes) {
      const auto bytes = schema::parse_bytes(size);
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

/// Backends that alternate: those of GPUs and those of the host have separate arrays, and so
/// separate lists.
std::vector<std::vector<std::string>> turns_of(const CommOptions& options) {
  std::vector<std::string> host;
  std::vector<std::string> gpus;
  for (const auto& name : options.backends) {
    if (const auto host_backend = comm::backend_named(name);
        !is_of_gpus(name) && !host_backend.ok()) {
      throw base::Error(
          base::usage_failure(host_backend.failure().text + "; on GPUs nccl, staged"));
    }
    (is_of_gpus(name) ? gpus : host).push_back(name);
  }
  std::vector<std::vector<std::string>> turns;
  for (auto& names : {host, gpus}) {
    if (!names.empty()) turns.push_back(names);
  }
  return turns;
}

/// Memory check: every rank of the node holds two arrays.
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

void write_result(Context& context, const comm::Measurement& result, const CommOptions& options) {
  if (options.json) {
    const base::Json line{{"collective", comm::name(result.collective)},
                          {"backend", result.backend},
                          {"ranks", result.ranks},
                          {"bytes", result.bytes},
                          {"seconds", result.seconds},
                          {"bytes_per_second", result.algorithm_rate()},
                          {"bus_bytes_per_second", result.bus_rate()},
                          {"group", options.axis.group}};
    context.out.write(base::json_text(line) + "\n");
  } else {
    context.out.write(
        format("{:<15} {:<8} {:<6} {:>5} {:>11} {:>11} {:>9.3f} GB/s {:>9.3f} GB/s "
               "{:>11}\n",
               comm::name(result.collective), result.backend, options.axis.group, result.ranks,
               base::bytes_text(result.bytes), base::duration_text(result.seconds),
               result.algorithm_rate() * 1e-9, result.bus_rate() * 1e-9,
               base::duration_text(result.fastest_seconds)));
  }
  context.out.flush();
}

void measure_turn(comm::MpiRuntime& mpi, Context& context, const CommOptions& options,
                  const std::vector<std::string>& backends, const comm::NcclLog* log) {
  const bool speaks = mpi.world_rank().value() == 0;
  const auto meeting = mpi.make_world({comm::Backend::automatic, options.timeout_seconds});
  const auto made = make_bench_groups(mpi, context.environment, backends, options.axis,
                                      {.timeout_seconds = options.timeout_seconds, .log = log});
  if (speaks && !options.json && !made.transport.empty()) {
    context.out.write(made.transport + "\n");
  }
  for (const auto& each : measurements_of(options)) {
    for (const auto& result : comm::measure(*meeting, *made.device, made.groups, each)) {
      if (speaks) write_result(context, result, options);
    }
  }
}

base::ExitCode run_comm(const CommOptions& options, Context& context) {
  const auto all = measurements_of(options);
  const auto turns = turns_of(options);
  check_memory(all, 1);
  const bool on_gpus = std::any_of(options.backends.begin(), options.backends.end(), is_of_gpus);
  const auto gpus = on_gpus ? topology::GpuUse::one_each : topology::GpuUse::none;
  return runtime::run_on_ranks(
      context.environment, gpus, [&](comm::MpiRuntime& mpi, const comm::NcclLog* log) {
        check_memory(all, mpi.local_size());
        if (mpi.world_rank().value() == 0 && !options.json) {
          context.out.write(format("{:<15} {:<8} {:<6} {:>5} {:>11} {:>11} {:>14} {:>14} {:>11}\n",
                                   "collective", "backend", "group", "ranks", "array", "median",
                                   "algbw", "busbw", "fastest"));
        }
        for (const auto& backends : turns) {
          measure_turn(mpi, context, options, backends, log);
        }
        return base::ExitCode::done;
      });
}

void add_axis_degree(CLI::App& app, const char* name, const char* earlier, int& degree) {
  const auto rule = in_range(1, most_ranks).description("");
  auto* const option = app.add_option(name, degree, "Degree of the mesh")->type_name("N");
  option->check(rule);
  add_earlier(app, earlier, degree, option)->check(rule);
}

void add_axis(CLI::App& app, BenchAxis& axis) {
  app.add_option(
         "--group", axis.group,
         "Who talks: world, or dp, tp, pp of a mesh of --tensor-parallel x --pipeline-parallel, "
         "all its groups at once")
      ->type_name("NAME")
      ->check(one_of({"world", "dp", "tp", "pp"}));
  add_axis_degree(app, "--tensor-parallel", "--tensor", axis.tensor);
  add_axis_degree(app, "--pipeline-parallel", "--pipeline", axis.pipeline);
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
                 "auto, shared, mpi or library (the MPI library's own); on GPUs nccl or staged; "
                 "several take turns")
      ->type_name("NAME,...")
      ->delimiter(',')
      ->default_str("auto");
  app.add_option("--precision", options->precision, "Numbers in the array: fp32 or bf16")
      ->type_name("TYPE")
      ->check(one_of({"fp32", "bf16"}));
  app.add_option("--repeats", options->repeats, "Measurements of each")
      ->type_name("N")
      ->check(in_range(1, 1'000'000).description(""));
  app.add_option("--timeout", options->timeout_seconds, "Seconds that any wait may last")
      ->type_name("SECONDS")
      ->check(in_range(0.001, 1e9).description(""));
  add_axis(app, options->axis);
  app.add_flag("--json", options->json, "One JSON object a line for each result");
  return [options](Context& context) { return run_comm(*options, context); };
}

}  // namespace

Command bench_comm_command() {
  return {.name = "comm",
          .summary = "Times collectives between the ranks, each result checked",
          .details =
              "Start it on the ranks to measure: mpirun -n 2 trireme bench comm --backend "
              "shared,library. Times are medians of the slowest rank. algbw is the bytes of the "
              "whole array on one rank over that; busbw is what the slowest link must carry, both "
              "as nccl-tests defines them. With --backend nccl each rank has a GPU of its own, "
              "and what carries NCCL's data is said first. "
              "send_receive: each rank sends its array to the next one and receives that of the "
              "one before. Backends take turns in one run, so that neighbours disturb all "
              "alike. All inputs are numbers whose sums are exact, and every result is compared "
              "with the one that is due.",
          .prepare = prepare_comm};
}

}  // namespace trireme::apps
