// SPDX-License-Identifier: Apache-2.0
// usage: bench_checkpoint [FOLDER [MEBIBYTES [REPEATS [THREADS]]]]
// Saving and loading, checksums and commit included, against what the storage itself does with as
// many bytes and threads: pwrite and fsync of one file, pread of it. Turn about in one run.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/save.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <thread>
#include <vector>

namespace {

using namespace trireme;

constexpr std::size_t block_bytes = std::size_t{1} << 20;

struct Settings {
  std::filesystem::path folder = ".";
  std::size_t bytes = std::size_t{1} << 30;
  int repeats = 5;
  int threads = 2;
};

/// A run of the transformer's sizes: a few large tensors, many small ones.
struct State {
  explicit State(std::size_t bytes) : memory(bytes / sizeof(float)) {
    for (std::size_t at = 0; at < memory.size(); at += 4) {
      const auto random = base::philox(1, 2, at);
      for (std::size_t lane = 0; lane < 4 && at + lane < memory.size(); ++lane) {
        memory[at + lane] = static_cast<float>(random[lane]);
      }
    }
    const auto rest = static_cast<std::int64_t>(memory.size());
    std::int64_t used = 0;
    checkpoint::ContentsBuilder builder;
    for (int index = 0; used < rest; ++index) {
      const std::int64_t width = index % 3 == 0 ? 768 : 768 * 3072;
      const auto count = std::min(width, rest - used);
      const device::Tensor data(memory.data() + used, device::DType::f32, {count});
      const layout::Shape shape{count};
      const auto name = base::format("model/tensor.{}", index);
      const auto bucket = builder.add_bucket(data.dtype(), {0, 1, 1}, count);
      builder.add_part(name, shape, layout::whole(shape), bucket, 0);
      shards.push_back(data);
      load_items.push_back({name, shape, layout::whole(shape), data});
      used += count;
    }
    contents = builder.take();
  }
  std::span<std::byte> bytes() { return std::as_writable_bytes(std::span(memory)); }

  std::vector<float> memory;
  checkpoint::Contents contents;
  std::vector<device::Tensor> shards;
  std::vector<checkpoint::LoadItem> load_items;
};

double seconds_of(const std::function<void()>& work) {
  const auto start = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> raw;
  std::vector<double> ours;
  void print(const char* what, std::size_t bytes) const {
    const auto rate = [bytes](double seconds) {
      return static_cast<double>(bytes) / seconds / 1e9;
    };
    std::vector<double> ratios;
    for (std::size_t index = 0; index < raw.size(); ++index) {
      ratios.push_back(raw[index] / ours[index]);
    }
    std::puts(base::format("{:<22} raw {:6.2f} GB/s   checkpoint {:6.2f} GB/s   ratio {:5.2f} "
                           "(medians of {}; fastest {:.2f} and {:.2f} GB/s)",
                           what, rate(median(raw)), rate(median(ours)), median(ratios), raw.size(),
                           rate(*std::min_element(raw.begin(), raw.end())),
                           rate(*std::min_element(ours.begin(), ours.end())))
                  .c_str());
  }
};

/// One of each, the order turning with the repeat: on a shared disk the second pays for the first.
void pair(Times& times, int repeat, const std::function<void()>& raw,
          const std::function<void()>& ours, const std::function<void()>& before) {
  for (const bool is_raw : {repeat % 2 == 0, repeat % 2 != 0}) {
    before();
    (is_raw ? times.raw : times.ours).push_back(seconds_of(is_raw ? raw : ours));
  }
}

/// Every thread takes every n-th block.
void by_blocks(std::span<std::byte> bytes, int threads,
               const std::function<void(std::span<std::byte>, std::size_t)>& move) {
  std::vector<std::jthread> pool;
  for (int thread = 0; thread < threads; ++thread) {
    pool.emplace_back([&, thread] {
      for (auto at = static_cast<std::size_t>(thread) * block_bytes; at < bytes.size();
           at += static_cast<std::size_t>(threads) * block_bytes) {
        move(bytes.subspan(at, std::min(block_bytes, bytes.size() - at)), at);
      }
    });
  }
}

void raw_write(const std::filesystem::path& path, State& state, int threads) {
  auto file = base::value_or_throw(base::open_file(path, O_CREAT | O_TRUNC | O_WRONLY));
  by_blocks(state.bytes(), threads, [&](std::span<std::byte> part, std::size_t at) {
    base::write_at(file, part, at, path);
  });
  if (::fsync(file.get()) != 0) throw base::Error(base::ExitCode::checkpoint, "fsync failed");
  base::success_or_throw(file.close());
}

void raw_read(const std::filesystem::path& path, State& state, int threads) {
  const auto file = base::value_or_throw(base::open_file(path, O_RDONLY));
  by_blocks(state.bytes(), threads, [&](std::span<std::byte> part, std::size_t at) {
    base::read_at(file, part, at, path);
  });
}

/// Next reads come from the disk: clean pages are given up.
void forget(const std::filesystem::path& folder) {
  for (const auto& entry : std::filesystem::recursive_directory_iterator(folder)) {
    if (!entry.is_regular_file()) continue;
    const auto file = base::value_or_throw(base::open_file(entry.path(), O_RDONLY));
    ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

void run(const Settings& settings) {
  const auto folder = settings.folder / "bench-checkpoint";
  std::filesystem::create_directories(folder);
  State state(settings.bytes);
  const auto world = comm::make_local_group("world", base::Rank(0));
  const auto raw_file = folder / "raw";
  const auto save = [&] {
    checkpoint::save({folder / "checkpoints", 1, 0, "bench", {}, state.contents, state.shards},
                     *world, {settings.threads});
  };
  const auto load = [&] {
    checkpoint::load(folder / "checkpoints" / "step-000000001", state.load_items, *world,
                     {settings.threads});
  };
  Times write;
  Times read_cold;
  Times read_warm;
  const auto write_raw = [&] { raw_write(raw_file, state, settings.threads); };
  const auto read_raw = [&] { raw_read(raw_file, state, settings.threads); };
  const auto nothing = [] {};
  for (int repeat = 0; repeat < settings.repeats; ++repeat) {
    std::filesystem::remove_all(folder / "checkpoints");
    std::filesystem::remove(raw_file);
    pair(write, repeat, write_raw, save, [] { ::sync(); });
    pair(read_cold, repeat, read_raw, load, [&] { forget(folder); });
    pair(read_warm, repeat, read_raw, load, nothing);
  }
  write.print("save, durable", settings.bytes);
  read_cold.print("load from disk", settings.bytes);
  read_warm.print("load from page cache", settings.bytes);
  std::filesystem::remove_all(folder);
}

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.folder = argv[1];
  if (argc > 2) settings.bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  if (argc > 3) settings.repeats = std::max(1, std::atoi(argv[3]));
  if (argc > 4) settings.threads = std::max(1, std::atoi(argv[4]));
  try {
    run(settings);
  } catch (const base::Error& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
