// SPDX-License-Identifier: Apache-2.0
// trireme bench io
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/checkpoint/measure_disk.hpp"
#include "trireme/runtime/session.hpp"
#include "trireme/schema/value.hpp"

#include "apps/cli/commands.hpp"
#include "apps/cli/option_values.hpp"

#include <memory>

namespace trireme::apps {
namespace {

using base::format;

struct IoOptions {
  std::string path;
  std::string bytes = "1GiB";
  int threads = 0;
  int repeats = 3;
  bool json = false;
};

checkpoint::DiskOptions disk_options(const IoOptions& options) {
  checkpoint::DiskOptions disk;
  disk.folder = options.path;
  disk.threads = options.threads;
  disk.repeats = options.repeats;
  std::error_code problem;
  if (!std::filesystem::is_directory(disk.folder, problem)) {
    throw base::Error(base::usage_failure(
        format("--path '{}' is not a folder (files are written there and removed); name one",
               options.path)));
  }
  const auto bytes = schema::parse_bytes(options.bytes);
  if (!bytes.ok() || *bytes < 1) {
    throw base::Error(base::usage_failure(
        format("--bytes {} is not the size of a file ({}); try --bytes 1GiB", options.bytes,
               bytes.ok() ? "it must hold something" : bytes.failure().text)));
  }
  disk.bytes = static_cast<std::uint64_t>(*bytes);
  const auto space = std::filesystem::space(disk.folder, problem);
  if (!problem && disk.bytes > space.available) {
    throw base::Error(base::usage_failure(
        format("--bytes {} does not fit into '{}' ({} are free); use fewer", options.bytes,
               options.path, base::bytes_text(space.available))));
  }
  return disk;
}

void write_result(Context& context, const checkpoint::DiskMeasurement& result, bool json) {
  const double rate = static_cast<double>(result.bytes) / result.seconds;
  if (json) {
    const base::Json line{
        {"operation", result.operation}, {"access", checkpoint::name(result.access)},
        {"ranks", result.ranks},         {"bytes", result.bytes},
        {"seconds", result.seconds},     {"bytes_per_second", rate}};
    context.out.write(base::json_text(line) + "\n");
  } else {
    context.out.write(format("{:<10} {:<9} {:>5} {:>11} {:>11} {:>10.3f} GB/s {:>11}\n",
                             result.operation, checkpoint::name(result.access), result.ranks,
                             base::bytes_text(result.bytes), base::duration_text(result.seconds),
                             rate * 1e-9, base::duration_text(result.fastest_seconds)));
  }
}

base::ExitCode run_io(const IoOptions& options, Context& context) {
  const auto disk = disk_options(options);
  return runtime::run_on_ranks(
      context.environment, topology::GpuUse::none,
      [&](comm::MpiRuntime& mpi, const comm::NcclLog*) {
        const auto world = mpi.make_world();
        const auto results = checkpoint::measure_disk(*world, disk);
        if (world->rank() != 0) return base::ExitCode::done;
        if (!options.json) {
          context.out.write(format("{:<10} {:<9} {:>5} {:>11} {:>11} {:>15} {:>11}\n", "operation",
                                   "access", "ranks", "bytes", "median", "bytes / median",
                                   "fastest"));
        }
        for (const auto& result : results) write_result(context, result, options.json);
        return base::ExitCode::done;
      });
}

Action prepare_io(CLI::App& app) {
  auto options = std::make_shared<IoOptions>();
  app.add_option("--path", options->path, "Folder on the disk to measure")
      ->type_name("DIR")
      ->required();
  app.add_option("--bytes", options->bytes, "Of all ranks together")
      ->type_name("SIZE")
      ->default_str("1GiB");
  app.add_option("--threads", options->threads,
                 "Of each rank; 0: as many as a checkpoint's writer takes")
      ->type_name("N")
      ->default_str("0")
      ->check(in_range(0, 4096).description(""));
  app.add_option("--repeats", options->repeats, "Measurements of each")
      ->type_name("N")
      ->check(in_range(1, 1'000'000).description(""));
  app.add_flag("--json", options->json, "One JSON object a line for each result");
  return [options](Context& context) { return run_io(*options, context); };
}

}  // namespace

Command bench_io_command() {
  return {.name = "io",
          .summary = "Times writing and reading files, as checkpoints do it and past the cache",
          .details =
              "Each rank writes a file with its share of the bytes: space reserved, blocks of "
              "1 MiB, fsync; then reads it back with nothing of it in the cache, and compares. "
              "'buffered' goes through the system's cache, as checkpoints do; 'direct' past it, "
              "where the file system allows. The data cannot be compressed; the files are "
              "removed. One rank alone, or under mpirun -n N.",
          .prepare = prepare_io};
}

}  // namespace trireme::apps
