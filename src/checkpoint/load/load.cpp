// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/load.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/signature.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/peer_error.hpp"

#include "checkpoint/load/exchange.hpp"
#include "checkpoint/load/plan.hpp"
#include "checkpoint/load/staged_items.hpp"
#include "checkpoint/load/stored_file.hpp"
#include "checkpoint/steps/hold.hpp"

#include <algorithm>
#include <atomic>
#include <chrono>

namespace trireme::checkpoint {
namespace {

/// All ranks throw this when the storage refused one of them.
class AllUnreadable : public comm::AgreedError {
 public:
  explicit AllUnreadable(const comm::AgreedError& error)
      : AgreedError({error.code(), error.what()}, error.first(), error.group_size()) {}
};

/// comm::agree_after() that distinguishes refusals of the storage from defects of a step.
void together_reading(comm::ProcessGroup& world, const std::function<void()>& work) {
  std::int32_t refused = 0;
  try {
    comm::agree_after(world, [&] {
      try {
        work();
      } catch (const UnreadableError&) {
        refused = 1;
        throw;
      }
    });
  } catch (const comm::AgreedError& error) {
    // All ranks are here.
    world.all_reduce(device::Tensor(&refused, device::DType::i32, {1}), comm::ReduceOp::max);
    if (refused != 0) throw AllUnreadable(error);
    throw;
  }
}

/// Rank 0 reads the manifest, so that a thousand ranks do not; each checks it for itself.
Manifest read_manifest_together(const std::filesystem::path& step_folder, comm::ProcessGroup& world,
                                const ReadAccess& access) {
  std::string text;
  together_reading(world, [&] {
    if (world.rank() != 0) return;
    text = manifest_text_of(step_folder, access);
    if (access.key.empty()) return;
    const auto source = (step_folder / "manifest.json").string();
    base::success_or_throw(check_signature(text, source, access.key));
  });
  text = comm::broadcast_bytes(world, text);
  Manifest manifest;
  comm::agree_after(world,
                    [&] { manifest = base::value_or_throw(manifest_from(step_folder, text)); });
  if (world.rank() == 0 && !access.key.empty() && !manifest.has_digests()) {
    base::log::local::warning("checkpoint", "{}", not_covered_text(step_folder));
  }
  return manifest;
}

std::uint64_t read_file(const std::filesystem::path& step_folder, const Manifest& manifest,
                        const FileReads& reads, const LoadOptions& options) {
  BlockReader reader(step_folder, manifest, reads.file, options.access);
  if (const auto damage = reader.load_checksums()) {
    throw base::Error(base::ExitCode::checkpoint, damage->text);
  }
  reader.open_directly();
  std::atomic<std::uint64_t> read{0};
  reader.read_all(reads.blocks, options.threads,
                  [&](std::uint64_t block, std::span<const std::byte> bytes, bool matches) {
                    const auto begin = reader.block_begin(block);
                    if (!matches)
                      throw_damage(step_folder, manifest, reads.file, begin, bytes.size());
                    read += bytes.size();
                    deliver(reads, begin, bytes);
                  });
  return read;
}

/// Bytes of the items' boxes as they are stored.
std::uint64_t box_bytes_of(const Manifest& manifest, std::span<const LoadItem> items) {
  std::uint64_t bytes = 0;
  for (const auto& item : items) {
    const auto& tensor = *manifest.contents.find(item.name);
    bytes +=
        static_cast<std::uint64_t>(layout::element_count(item.box)) * device::size_of(tensor.dtype);
  }
  return bytes;
}

/// Sums up what all ranks have read. Collective.
void sum_up(LoadReport& report, comm::ProcessGroup& world) {
  struct Bytes {
    std::uint64_t read;
    std::uint64_t boxes;
  };
  Bytes mine{report.read_bytes, report.box_bytes};
  std::vector<Bytes> all(static_cast<std::size_t>(world.size()));
  constexpr std::int64_t words = sizeof(Bytes) / sizeof(std::int32_t);
  world.all_gather({&mine, device::DType::i32, {words}},
                   {all.data(), device::DType::i32, {words * world.size()}});
  for (const auto& [read, boxes] : all) {
    report.all_read_bytes += read;
    if (boxes == 0) continue;
    report.largest_read_ratio =
        std::max(report.largest_read_ratio, static_cast<double>(read) / static_cast<double>(boxes));
  }
}

/// Loads items in host memory and adds up what was read. Collective.
void exchange_items(const std::filesystem::path& step_folder, const Manifest& manifest,
                    std::span<const LoadItem> items, comm::ProcessGroup& world,
                    const LoadOptions& options, LoadReport& report) {
  std::vector<FileReads> plan;
  std::uint64_t box_bytes = 0;
  comm::agree_after(world, [&] {
    plan = base::value_or_throw(plan_reads(manifest, items));
    box_bytes = box_bytes_of(manifest, items);
  });
  Exchange exchange(step_folder, manifest, box_bytes, plan, world, options);
  exchange.run();
  together_reading(world, [&] { exchange.throw_failure(); });
  report.box_bytes += box_bytes;
  report.read_bytes += exchange.read_bytes();
}

/// The same of items on a device. Collective.
void stage_items(const std::filesystem::path& step_folder, const Manifest& manifest,
                 std::span<const LoadItem> items, comm::ProcessGroup& world,
                 const LoadOptions& options, LoadReport& report) {
  // All of them, before any destination changes.
  comm::agree_after(world, [&] { base::value_or_throw(plan_reads(manifest, items)); });
  StagedItems staged(items, *options.device);
  auto turns = static_cast<std::int32_t>(staged.turns());
  world.all_reduce(device::Tensor(&turns, device::DType::i32, {1}), comm::ReduceOp::max);
  for (std::size_t turn = 0; turn < static_cast<std::size_t>(turns); ++turn) {
    exchange_items(step_folder, manifest, staged.of_turn(turn), world, options, report);
    staged.store(turn);
  }
}

LoadReport load_items(const std::filesystem::path& step_folder, const Manifest& manifest,
                      std::span<const LoadItem> items, comm::ProcessGroup& world,
                      const LoadOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  LoadReport report{step_folder, manifest.step, manifest.tokens, manifest.state};
  const auto load_all = options.device == nullptr ? exchange_items : stage_items;
  load_all(step_folder, manifest, items, world, options, report);
  sum_up(report, world);
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

/// Rank 0's list, so that all ranks try the same folders.
std::vector<std::filesystem::path> list_together(const std::filesystem::path& checkpoints,
                                                 comm::ProcessGroup& world) {
  std::string names;
  if (world.rank() == 0) {
    for (const auto& step : list(checkpoints)) names += step.path.filename().string() + "\n";
  }
  names = comm::broadcast_bytes(world, names);
  std::vector<std::filesystem::path> folders;
  for (std::size_t at = 0; at < names.size();) {
    const auto end = names.find('\n', at);
    folders.push_back(checkpoints / names.substr(at, end - at));
    at = end + 1;
  }
  return folders;
}

}  // namespace

std::uint64_t load_alone(const std::filesystem::path& step_folder, const Manifest& manifest,
                         std::span<const LoadItem> items, const LoadOptions& options) {
  std::uint64_t bytes = 0;
  for (const auto& reads : base::value_or_throw(plan_reads(manifest, items))) {
    bytes += read_file(step_folder, manifest, reads, options);
  }
  return bytes;
}

LoadReport load(const std::filesystem::path& step_folder, std::span<const LoadItem> items,
                comm::ProcessGroup& world, const LoadOptions& options) {
  const auto manifest = read_manifest_together(step_folder, world, options.access);
  return load_items(step_folder, manifest, items, world, options);
}

LoadReport load_from(const std::filesystem::path& path, const ChooseItems& choose_items,
                     comm::ProcessGroup& world, const LoadOptions& options) {
  StepFolder found;
  comm::agree_after(world, [&] {
    if (world.rank() == 0) found = base::value_or_throw(find_step(path));
  });
  const std::filesystem::path folder = broadcast_bytes(world, found.path.string());
  const auto manifest = read_manifest_together(folder, world, options.access);
  std::vector<LoadItem> items;
  comm::agree_after(world, [&] { items = choose_items(manifest); });
  return load_items(folder, manifest, items, world, options);
}

std::optional<LoadReport> load_newest(const std::filesystem::path& checkpoints,
                                      const ChooseItems& choose_items, comm::ProcessGroup& world,
                                      const LoadOptions& options) {
  std::string reasons;
  for (const auto& folder : list_together(checkpoints, world)) {
    // No prune takes it away until it is loaded.
    const auto hold = world.rank() == 0 ? hold_step(folder) : nullptr;
    try {
      const auto manifest = read_manifest_together(folder, world, options.access);
      std::vector<LoadItem> items;
      comm::agree_after(world, [&] { items = choose_items(manifest); });
      return load_items(folder, manifest, items, world, options);
    } catch (const AllUnreadable&) {
      throw;
    } catch (const base::Error& error) {
      // Only a defect of this checkpoint leads to a try of the one before.
      if (error.code() != base::ExitCode::checkpoint) throw;
      base::log::warning("checkpoint", "{} is not used: {}", folder.filename().string(),
                         error.what());
      reasons += base::format("\n  {}: {}", folder.filename().string(), error.what());
    }
  }
  if (reasons.empty()) return std::nullopt;
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("no step in '{}' can be loaded (training would lose its progress); restore one "
                   "from a copy, or start in another run directory:{}",
                   checkpoints.string(), reasons));
}

}  // namespace trireme::checkpoint
