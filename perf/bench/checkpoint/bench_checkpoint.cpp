// SPDX-License-Identifier: Apache-2.0
// usage: [mpirun -n WRITERS] bench_checkpoint [FOLDER [MEBIBYTES [REPEATS [THREADS]]]]
// Saving, loading and verifying by so many ranks, checksums, sync and commit included, against what
// the storage itself does with as many bytes and files: writes of 16 MiB past the system's cache
// and fsync, and such reads. Turn about in one run; loads are cold. MEBIBYTES: of all ranks
// together.
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/philox.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/load.hpp"
#include "trireme/checkpoint/save.hpp"
#include "trireme/comm/mpi_runtime.hpp"
#include "trireme/device/arena.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <vector>

namespace {

using namespace trireme;

constexpr std::size_t piece_bytes = std::size_t{16} << 20;
/// Parameters of a layer of GPT-2 124M, and of a norm.
constexpr std::int64_t layer_elements = std::int64_t{768} * 3072;
constexpr std::int64_t norm_elements = 768;

struct Settings {
  std::filesystem::path folder = ".";
  std::size_t bytes = std::size_t{1} << 30;
  int repeats = 5;
  int threads = 0;
};

/// State of a transformer's sizes, as one of `writers` has it: a few large tensors, many small.
struct State {
  State(std::size_t bytes, int rank, int writers)
      : arena(device::Arena::host(device::Purpose::optimizer, bytes)) {
    auto* const values = static_cast<float*>(arena.whole().raw());
    for (std::size_t at = 0; at < bytes / sizeof(float); ++at) {
      values[at] = static_cast<float>(base::philox(1, static_cast<std::uint64_t>(rank), at)[0]);
    }
    checkpoint::ContentsBuilder builder;
    for (int writer = 0; writer < writers; ++writer) {
      const auto rest = static_cast<std::int64_t>(bytes / sizeof(float));
      std::int64_t used = 0;
      for (int index = 0; used < rest; ++index) {
        const auto count = std::min(index % 3 == 0 ? norm_elements : layer_elements, rest - used);
        const layout::Shape shape{count};
        const auto name = base::format("rank.{}.tensor.{}", writer, index);
        const checkpoint::FileRange file{static_cast<std::size_t>(writer), 1, 1};
        const auto bucket = builder.add_bucket(device::DType::f32, file, count);
        builder.add_part(name, shape, layout::whole(shape), bucket, 0);
        if (writer == rank) {
          const device::Tensor data(values + used, device::DType::f32, {count});
          shards.push_back(data);
          items.push_back({name, shape, layout::whole(shape), data});
        }
        used += count;
      }
    }
    contents = builder.take();
  }
  std::span<std::byte> bytes() const {
    return {static_cast<std::byte*>(arena.whole().raw()), arena.whole().byte_count()};
  }

  device::Arena arena;
  checkpoint::Contents contents;
  std::vector<device::Tensor> shards;
  std::vector<checkpoint::LoadItem> items;
};

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

struct Times {
  std::vector<double> raw;
  std::vector<double> ours;
  void print(const char* what, std::size_t bytes, int writers) const {
    const auto rate = [bytes](double seconds) {
      return static_cast<double>(bytes) / seconds / 1e9;
    };
    std::vector<double> ratios;
    for (std::size_t index = 0; index < raw.size(); ++index) {
      ratios.push_back(raw[index] / ours[index]);
    }
    std::puts(base::format("{:<6} {:>5} MiB {} ranks   raw {:6.2f} GB/s   checkpoint {:6.2f} GB/s "
                           "  ratio {:5.2f} (medians of {})",
                           what, bytes >> 20, writers, rate(median(raw)), rate(median(ours)),
                           median(ratios), raw.size())
                  .c_str());
  }
};

class Bench {
 public:
  Bench(const Settings& settings, comm::ProcessGroup& world)
      : settings_(settings),
        world_(world),
        folder_(settings.folder / "bench-checkpoint"),
        raw_file_(folder_ / base::format("raw-{}", world.rank())),
        state_(settings.bytes / static_cast<std::size_t>(world.size()) / piece_bytes * piece_bytes,
               world.rank(), world.size()) {
    std::filesystem::create_directories(folder_);
  }

  void run() {
    for (int repeat = 0; repeat < settings_.repeats; ++repeat) {
      std::filesystem::remove(raw_file_);
      if (world_.rank() == 0) std::filesystem::remove_all(folder_ / "checkpoints");
      world_.barrier();
      pair(
          write_, repeat, [this] { raw_write(); }, [this] { save(); });
      pair(
          read_, repeat, [this] { raw_read(); }, [this] { load(); });
      pair(
          verify_, repeat, [this] { raw_read(); }, [this] { verify(); });
    }
    world_.barrier();
    if (world_.rank() != 0) return;
    const auto bytes = state_.bytes().size() * static_cast<std::size_t>(world_.size());
    write_.print("save", bytes, world_.size());
    read_.print("load", bytes, world_.size());
    verify_.print("verify", bytes, world_.size());
    std::filesystem::remove_all(folder_);
  }

 private:
  /// One of each, the order turning with the repeat: on a shared disk the second pays for the
  /// first.
  void pair(Times& times, int repeat, const std::function<void()>& raw,
            const std::function<void()>& ours) {
    for (const bool is_raw : {repeat % 2 == 0, repeat % 2 != 0}) {
      forget();
      world_.barrier();
      const auto start = std::chrono::steady_clock::now();
      is_raw ? raw() : ours();
      world_.barrier();
      const std::chrono::duration<double> passed = std::chrono::steady_clock::now() - start;
      (is_raw ? times.raw : times.ours).push_back(passed.count());
    }
  }
  /// Next reads come from the disk: what is written is there, and clean pages are given up.
  void forget() {
    ::sync();
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (!entry.is_regular_file()) continue;
      const auto file = base::value_or_throw(base::open_file(entry.path(), O_RDONLY));
      ::posix_fadvise(file.get(), 0, 0, POSIX_FADV_DONTNEED);
    }
  }

  void raw_write() {
    auto file =
        base::value_or_throw(base::open_file(raw_file_, O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT));
    const auto bytes = state_.bytes();
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
      base::write_at(file, bytes.subspan(at, piece_bytes), at, raw_file_);
    }
    if (::fsync(file.get()) != 0) throw base::Error(base::ExitCode::checkpoint, "fsync failed");
    base::success_or_throw(file.close());
  }
  void raw_read() {
    const auto file = base::value_or_throw(base::open_file(raw_file_, O_RDONLY | O_DIRECT));
    const auto bytes = state_.bytes();
    for (std::size_t at = 0; at < bytes.size(); at += piece_bytes) {
      base::read_at(file, bytes.subspan(at, piece_bytes), at, raw_file_);
    }
  }
  void save() {
    checkpoint::save({folder_ / "checkpoints", 1, 0, "bench", {}, state_.contents, state_.shards},
                     world_, {settings_.threads});
  }
  void load() {
    checkpoint::load(folder_ / "checkpoints" / "step-000000001", state_.items, world_,
                     {settings_.threads});
  }

  /// By one process, as the command does it.
  void verify() {
    if (world_.rank() != 0) return;
    const auto step = folder_ / "checkpoints" / "step-000000001";
    const auto report = checkpoint::verify(step, checkpoint::VerifyLevel::full, settings_.threads);
    if (!report.good()) throw base::Error(base::ExitCode::checkpoint, report.damages[0].text);
  }

  Settings settings_;
  comm::ProcessGroup& world_;
  std::filesystem::path folder_;
  std::filesystem::path raw_file_;
  State state_;
  Times write_;
  Times read_;
  Times verify_;
};

}  // namespace

int main(int argc, char** argv) {
  Settings settings;
  if (argc > 1) settings.folder = argv[1];
  if (argc > 2) settings.bytes = std::strtoull(argv[2], nullptr, 10) << 20;
  if (argc > 3) settings.repeats = std::max(1, std::atoi(argv[3]));
  if (argc > 4) settings.threads = std::max(0, std::atoi(argv[4]));
  try {
    comm::MpiRuntime mpi;
    const auto world = mpi.make_world({});
    Bench(settings, *world).run();
  } catch (const base::Error& error) {
    std::fputs((std::string(error.what()) + "\n").c_str(), stderr);
    return static_cast<int>(error.code());
  }
  return 0;
}
