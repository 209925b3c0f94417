// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/load/plan.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::checkpoint {
namespace {

base::Failure no_such_tensor(const Manifest& manifest, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& tensor : manifest.contents.tensors) names.push_back(tensor.name);
  return base::checkpoint_failure(
      base::format("the checkpoint of step {} has no tensor '{}' (it holds {} others){}",
                   manifest.step, name, names.size(), base::did_you_mean(name, names)));
}

bool is_float(device::DType dtype) {
  return dtype != device::DType::i32;
}

base::Status check_item(const LoadItem& item, const StoredTensor& tensor) {
  if (item.shape != tensor.shape) {
    return base::checkpoint_failure(base::format(
        "tensor '{}' is [{}] in the checkpoint but [{}] here (the model is not the one that was "
        "saved); compare the [model] section with the checkpoint's ('trireme checkpoint inspect')",
        item.name, base::join(tensor.shape, ", "), base::join(item.shape, ", ")));
  }
  const auto wanted = item.destination.dtype();
  if (wanted != tensor.dtype && !(is_float(wanted) && is_float(tensor.dtype))) {
    return base::checkpoint_failure(base::format("tensor '{}' is {} in the checkpoint but {} here",
                                                 item.name, device::name(tensor.dtype),
                                                 device::name(wanted)));
  }
  const auto whole = layout::whole(tensor.shape);
  if (item.box.offset.size() != tensor.shape.size() ||
      item.box.length.size() != tensor.shape.size() ||
      layout::intersect(item.box, whole) != item.box || !holds(item.destination, item.box)) {
    return {base::Failure{base::ExitCode::internal,
                          base::format("tensor '{}' [{}]: {} cannot take the box {}", item.name,
                                       base::join(tensor.shape, ", "), item.destination.text(),
                                       layout::text(item.box))}};
  }
  return {};
}

bool is_empty(const layout::Box& box) {
  return std::find(box.length.begin(), box.length.end(), 0) != box.length.end();
}

void mark_blocks(const Transfer& transfer, std::uint64_t block_bytes, std::vector<bool>& wanted) {
  for (auto number = first_run(transfer, transfer.slice.begin);;) {
    const auto run = run_at(transfer, number);
    if (!run) return;
    const auto last = (transfer.byte_of(run->end) - 1) / block_bytes;
    for (auto block = transfer.byte_of(run->begin) / block_bytes; block <= last; ++block) {
      wanted[block] = true;
    }
    // Runs that end inside a block already listed are covered.
    const auto covered = ((last + 1) * block_bytes - transfer.begin()) / transfer.element_bytes();
    number = std::max(
        number + 1, first_run(transfer, transfer.slice.begin + static_cast<std::int64_t>(covered)));
  }
}

/// Adds the transfers of a part to an item whose box meets it in `common`.
void add_transfers(const Contents& contents, const StoredTensor& tensor, const TensorPart& part,
                   const LoadItem& item, const layout::Box& common, std::vector<FileReads>& files) {
  const BoxRuns runs(part.box, item.box, item.destination, common);
  const auto positions = contents.positions_of(part, runs.stored_begin(), runs.stored_end());
  for (auto at = positions.begin; at < positions.end; ++at) {
    Transfer transfer{&tensor, contents.slice_at(part, at), &item, runs};
    // Runs may leave out a whole shard between the first and the last.
    if (!run_at(transfer, first_run(transfer, transfer.slice.begin))) continue;
    files[transfer.slice.file].transfers.push_back(std::move(transfer));
  }
}

template <typename Source, typename Target>
void convert(const std::byte* from, std::byte* to, std::size_t count, Target (*turn)(Source)) {
  for (std::size_t index = 0; index < count; ++index) {
    Source source;
    std::memcpy(&source, from + index * sizeof source, sizeof source);
    const Target target = turn(source);
    std::memcpy(to + index * sizeof target, &target, sizeof target);
  }
}

/// Converts whole elements between the two floating types.
void convert_elements(device::DType stored, const std::byte* from, std::byte* to,
                      std::size_t count) {
  if (stored == device::DType::bf16) {
    convert<device::Bf16, float>(from, to, count, [](device::Bf16 x) { return to_float(x); });
  } else {
    convert<float, device::Bf16>(from, to, count, [](float x) { return device::to_bf16(x); });
  }
}

}  // namespace

std::int64_t first_run(const Transfer& transfer, std::int64_t element) {
  return transfer.runs.first_ending_after(element);
}

std::optional<TransferRun> run_at(const Transfer& transfer, std::int64_t number) {
  if (number >= transfer.runs.count()) return std::nullopt;
  const auto run = transfer.runs.at(number);
  const auto begin = std::max(run.stored, transfer.slice.begin);
  const auto end = std::min(run.stored + transfer.runs.length(), transfer.slice.end);
  if (begin >= end) return std::nullopt;
  return TransferRun{begin, end, run.held + begin - run.stored};
}

base::Result<std::vector<FileReads>> plan_reads(const Manifest& manifest,
                                                std::span<const LoadItem> items) {
  std::vector<FileReads> files(manifest.files.size());
  for (std::size_t index = 0; index < files.size(); ++index) files[index].file = index;
  for (const auto& item : items) {
    const auto* tensor = manifest.contents.find(item.name);
    if (tensor == nullptr) return no_such_tensor(manifest, item.name);
    if (is_empty(item.box)) continue;
    if (auto status = check_item(item, *tensor); !status) return status.failure();
    for (const auto& part : tensor->parts) {
      const auto common = layout::intersect(part.box, item.box);
      if (common) add_transfers(manifest.contents, *tensor, part, item, *common, files);
    }
  }
  std::erase_if(files, [](const FileReads& file) { return file.transfers.empty(); });
  for (auto& file : files) {
    // Items of one slice keep their order: ranks that exchange values count on it.
    std::stable_sort(file.transfers.begin(), file.transfers.end(),
                     [](const Transfer& a, const Transfer& b) { return a.begin() < b.begin(); });
    std::vector<bool> wanted(manifest.block_count(manifest.files[file.file]), false);
    for (const auto& transfer : file.transfers) mark_blocks(transfer, manifest.block_bytes, wanted);
    for (std::size_t block = 0; block < wanted.size(); ++block) {
      if (wanted[block]) file.blocks.push_back(block);
    }
  }
  return files;
}

void copy_to_item(const Transfer& transfer, const std::byte* from, std::uint64_t elements,
                  std::int64_t held) {
  const auto& destination = transfer.item->destination;
  auto* to = static_cast<std::byte*>(destination.raw()) +
             static_cast<std::uint64_t>(held) * device::size_of(destination.dtype());
  if (destination.dtype() == transfer.tensor->dtype) {
    std::memcpy(to, from, elements * transfer.element_bytes());
  } else {
    convert_elements(transfer.tensor->dtype, from, to, elements);
  }
}

void deliver(const FileReads& reads, std::uint64_t begin, std::span<const std::byte> bytes) {
  const auto end = begin + bytes.size();
  each_transfer_within(reads, begin, end, [&](const Transfer& transfer) {
    each_run_within(transfer, begin, end,
                    [&](std::uint64_t byte, std::uint64_t elements, std::int64_t held) {
                      copy_to_item(transfer, &bytes[byte - begin], elements, held);
                    });
  });
}

}  // namespace trireme::checkpoint
