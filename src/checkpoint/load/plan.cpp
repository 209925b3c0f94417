// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/load/plan.hpp"

#include "trireme/base/format.hpp"
#include "trireme/base/suggest.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::checkpoint {
namespace {

base::Failure failure(std::string text) {
  return {base::ExitCode::checkpoint, std::move(text)};
}

base::Failure no_such_tensor(const Manifest& manifest, const std::string& name) {
  std::vector<std::string> names;
  for (const auto& tensor : manifest.tensors) names.push_back(tensor.name);
  return failure(base::format("the checkpoint of step {} has no tensor '{}' (it holds {} others){}",
                              manifest.step, name, names.size(), base::did_you_mean(name, names)));
}

bool is_float(device::DType dtype) {
  return dtype != device::DType::i32;
}

base::Status check_item(const LoadItem& item, const StoredTensor& tensor) {
  if (item.shape != tensor.shape) {
    return failure(base::format(
        "tensor '{}' is [{}] in the checkpoint but [{}] here (the model is not the one that was "
        "saved); compare the [model] section with the checkpoint's ('trireme checkpoint inspect')",
        item.name, base::join(tensor.shape, ", "), base::join(item.shape, ", ")));
  }
  const auto wanted = item.destination.dtype();
  if (wanted != tensor.dtype && !(is_float(wanted) && is_float(tensor.dtype))) {
    return failure(base::format("tensor '{}' is {} in the checkpoint but {} here", item.name,
                                device::name(tensor.dtype), device::name(wanted)));
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
  const auto size = transfer.element_bytes();
  const auto run_bytes = static_cast<std::uint64_t>(transfer.runs.length()) * size;
  for (std::int64_t index = 0; index < transfer.runs.count();) {
    const auto begin =
        transfer.stored->byte + static_cast<std::uint64_t>(transfer.runs.at(index).stored) * size;
    const auto last = (begin + run_bytes - 1) / block_bytes;
    for (auto block = begin / block_bytes; block <= last; ++block) wanted[block] = true;
    // Runs that end inside a block already listed are covered.
    const auto covered = ((last + 1) * block_bytes - transfer.stored->byte) / size;
    index =
        std::max(index + 1, transfer.runs.first_ending_after(static_cast<std::int64_t>(covered)));
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

base::Result<std::vector<FileReads>> plan_reads(const Manifest& manifest,
                                                std::span<const LoadItem> items) {
  std::vector<FileReads> files(manifest.files.size());
  for (std::size_t index = 0; index < files.size(); ++index) files[index].file = index;
  for (const auto& item : items) {
    const auto* tensor = manifest.find(item.name);
    if (tensor == nullptr) return no_such_tensor(manifest, item.name);
    if (is_empty(item.box)) continue;
    if (auto status = check_item(item, *tensor); !status) return status.failure();
    for (const auto& stored : tensor->boxes) {
      const auto part = layout::intersect(stored.box, item.box);
      if (!part) continue;
      files[stored.file].transfers.push_back(
          {tensor, &stored, &item, BoxRuns(stored.box, item.box, item.destination, *part)});
    }
  }
  std::erase_if(files, [](const FileReads& file) { return file.transfers.empty(); });
  for (auto& file : files) {
    std::sort(file.transfers.begin(), file.transfers.end(),
              [](const Transfer& a, const Transfer& b) { return a.stored->byte < b.stored->byte; });
    std::vector<bool> wanted(manifest.files[file.file].crc32c.size(), false);
    for (const auto& transfer : file.transfers) mark_blocks(transfer, manifest.block_bytes, wanted);
    for (std::size_t block = 0; block < wanted.size(); ++block) {
      if (wanted[block]) file.blocks.push_back(block);
    }
  }
  return files;
}

void deliver(const Transfer& transfer, std::uint64_t begin, std::span<const std::byte> block) {
  const auto size = transfer.element_bytes();
  const auto origin = transfer.stored->byte;
  const auto end = begin + block.size();
  const auto& destination = transfer.item->destination;
  const auto held_size = device::size_of(destination.dtype());
  const auto first = begin > origin ? (begin - origin) / size : 0;
  for (auto index = transfer.runs.first_ending_after(static_cast<std::int64_t>(first));
       index < transfer.runs.count(); ++index) {
    const auto run = transfer.runs.at(index);
    const auto run_begin = origin + static_cast<std::uint64_t>(run.stored) * size;
    if (run_begin >= end) return;
    // A block holds whole elements: boxes begin at multiples of the element's size.
    const auto skip = begin > run_begin ? begin - run_begin : 0;
    const auto stop =
        std::min(run_begin + static_cast<std::uint64_t>(transfer.runs.length()) * size, end);
    const auto elements = (stop - run_begin - skip) / size;
    const auto* from = &block[run_begin + skip - begin];
    auto* to = static_cast<std::byte*>(destination.raw()) +
               (static_cast<std::uint64_t>(run.held) + skip / size) * held_size;
    if (destination.dtype() == transfer.tensor->dtype) {
      std::memcpy(to, from, elements * size);
    } else {
      convert_elements(transfer.tensor->dtype, from, to, elements);
    }
  }
}

}  // namespace trireme::checkpoint
