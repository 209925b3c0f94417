#include "trireme/checkpoint/save.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/log.hpp"
#include "trireme/comm/agree.hpp"
#include "trireme/comm/bytes.hpp"
#include "trireme/comm/peer_error.hpp"

#include "checkpoint/box_runs.hpp"
#include "checkpoint/commit.hpp"
#include "checkpoint/exchange.hpp"
#include "checkpoint/manifest_check.hpp"
#include "checkpoint/shard_file.hpp"
#include "checkpoint/tiling.hpp"
#include "checkpoint/wire.hpp"

#include <algorithm>
#include <chrono>
#include <map>

// A save has four parts. Planning and committing are collective; writing is each rank's own and
// touches only its pieces. A save in the background will copy the pieces after planning and run
// the other two parts from a thread of its own.
namespace trireme::checkpoint {
namespace {

bool is_empty(const SaveItem& item) {
  return std::find(item.box.length.begin(), item.box.length.end(), 0) != item.box.length.end();
}

HeldBox held_of(const SaveItem& item) {
  base::success_or_throw(check_name(item.name));
  if (item.shape.size() != item.box.offset.size() || item.shape.size() != item.box.length.size() ||
      !holds(item.data, item.box)) {
    throw base::Error(
        base::ExitCode::internal,
        base::format("tensor '{}' [{}]: {} does not hold its box {}", item.name,
                     base::join(item.shape, ", "), item.data.text(), layout::text(item.box)));
  }
  return {item.name, item.shape, item.data.dtype(), item.box};
}

/// Which pieces this rank writes. Collective.
std::vector<Piece> plan(const SaveRequest& request, comm::ProcessGroup& world) {
  std::vector<HeldBox> mine;
  std::vector<const SaveItem*> items;
  comm::agree_after(world, [&] {
    if (request.step < 0 || request.tokens > INT64_MAX) {
      throw base::Error(base::ExitCode::internal, "a save needs a step and tokens of 0 or more");
    }
    for (const auto& item : request.items) {
      if (is_empty(item)) continue;
      mine.push_back(held_of(item));
      items.push_back(&item);
    }
  });
  const auto assignments = assign_writers(exchange_held(world, mine));
  std::vector<Piece> pieces;
  for (const auto& [item, box] : assignments[static_cast<std::size_t>(world.rank())]) {
    pieces.push_back({items[item], box, 0});
  }
  return pieces;
}

/// What a rank tells rank 0 about its shard; nothing when it wrote none.
std::string record_of(const StoredFile& file, const std::vector<Piece>& pieces) {
  WireWriter writer;
  if (pieces.empty()) return {};
  writer.put(file.name);
  writer.put(file.bytes);
  writer.put(static_cast<std::uint64_t>(file.crc32c.size()));
  for (const auto checksum : file.crc32c) writer.put(static_cast<std::uint64_t>(checksum));
  for (const auto& piece : pieces) {
    writer.put(piece.item->name);
    writer.put(static_cast<std::uint64_t>(piece.dtype()));
    writer.put(piece.byte);
    writer.put(static_cast<std::uint64_t>(piece.item->shape.size()));
    for (const auto* numbers : {&piece.item->shape, &piece.box.offset, &piece.box.length}) {
      for (const auto number : *numbers) writer.put_signed(number);
    }
  }
  return writer.bytes();
}

layout::Shape read_numbers(WireReader& reader, std::size_t count) {
  layout::Shape numbers(count);
  for (auto& number : numbers) number = reader.signed_number();
  return numbers;
}

void add_record(const std::string& record, std::map<std::string, StoredTensor>& tensors,
                std::vector<StoredFile>& files) {
  if (record.empty()) return;
  WireReader reader(record);
  StoredFile file{reader.text(), reader.number(), {}};
  file.crc32c.resize(reader.number());
  for (auto& checksum : file.crc32c) checksum = static_cast<std::uint32_t>(reader.number());
  while (!reader.done()) {
    StoredTensor tensor{reader.text(), static_cast<device::DType>(reader.number()), {}, {}};
    StoredBox stored{{}, files.size(), reader.number()};
    const auto dimensions = static_cast<std::size_t>(reader.number());
    tensor.shape = read_numbers(reader, dimensions);
    stored.box.offset = read_numbers(reader, dimensions);
    stored.box.length = read_numbers(reader, dimensions);
    const auto name = tensor.name;
    tensors.try_emplace(name, std::move(tensor)).first->second.boxes.push_back(std::move(stored));
  }
  files.push_back(std::move(file));
}

Manifest manifest_of(const SaveRequest& request, const std::vector<std::string>& records) {
  Manifest manifest;
  manifest.step = request.step;
  manifest.tokens = request.tokens;
  manifest.tool_version = request.tool_version;
  manifest.state = request.state;
  std::map<std::string, StoredTensor> tensors;
  for (const auto& record : records) add_record(record, tensors, manifest.files);
  for (auto& [name, tensor] : tensors) {
    std::sort(tensor.boxes.begin(), tensor.boxes.end(),
              [](const StoredBox& a, const StoredBox& b) { return a.box.offset < b.box.offset; });
    manifest.tensors.push_back(std::move(tensor));
  }
  return manifest;
}

std::filesystem::path write_and_commit(const SaveRequest& request, comm::ProcessGroup& world,
                                       const SaveOptions& options, std::vector<Piece>& pieces,
                                       const std::filesystem::path& temporary, SaveReport& report) {
  StoredFile file;
  comm::agree_after(world, [&] {
    if (pieces.empty()) return;
    const auto path = temporary / shard_name(world.rank());
    file = write_shard(options.files, path, pieces, options.threads);
  });
  const auto records = comm::all_gather_bytes(world, record_of(file, pieces));
  std::filesystem::path folder;
  comm::agree_after(world, [&] {
    auto manifest = manifest_of(request, records);
    report.payload_bytes = manifest.payload_bytes();
    if (world.rank() == 0) folder = commit(options.files, temporary, manifest);
  });
  return comm::broadcast_bytes(world, folder.string());
}

}  // namespace

std::uint64_t predict_manifest_bytes(std::span<const SaveItem> items, int replicas,
                                     comm::ProcessGroup& world) {
  constexpr double checksum_digits = 8;
  double mine = 0;
  for (const auto& item : items) {
    if (is_empty(item)) continue;
    const auto bytes = static_cast<std::uint64_t>(layout::element_count(item.box)) *
                       device::size_of(item.data.dtype());
    const StoredBox stored{item.box, static_cast<std::size_t>(world.size()), bytes * 100};
    const double blocks =
        static_cast<double>(bytes) / static_cast<double>(Manifest::default_block_bytes);
    mine += (static_cast<double>(box_text_bytes(stored)) + checksum_digits * blocks) / replicas;
  }
  auto all = static_cast<float>(mine);
  world.all_reduce(device::Tensor(&all, device::DType::f32, {1}), comm::ReduceOp::sum);
  return static_cast<std::uint64_t>(all);
}

base::Status check_manifest_bytes(std::uint64_t predicted) {
  if (predicted <= Manifest::max_text_bytes) return {};
  return base::usage_failure(
      manifest_too_long(base::format("would have about {}", base::bytes_text(predicted))));
}

SaveReport save(const SaveRequest& request, comm::ProcessGroup& world, const SaveOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  SaveReport report;
  auto pieces = plan(request, world);
  for (const auto& piece : pieces) report.written_bytes += piece.bytes();
  std::filesystem::path temporary;
  comm::agree_after(world, [&] {
    if (world.rank() != 0) return;
    temporary = make_temporary_folder(options.files, request.checkpoints, request.step);
  });
  temporary = comm::broadcast_bytes(world, temporary.string());
  try {
    report.folder = write_and_commit(request, world, options, pieces, temporary, report);
  } catch (const comm::AgreedError&) {
    // All ranks are here and have closed their files. A failed removal leaves garbage that
    // collect_garbage() finds; the failure of the save is what must be heard.
    if (world.rank() == 0 && options.files.remove_folder(temporary) != 0) {
      base::log::local::warning("checkpoint", "cannot remove '{}'", temporary.string());
    }
    throw;
  }
  report.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return report;
}

}  // namespace trireme::checkpoint
