// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/load/stored_file.hpp"

#include "trireme/base/checksum.hpp"
#include "trireme/base/contract.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include "checkpoint/folder_names.hpp"
#include "checkpoint/parallel.hpp"

#include <algorithm>
#include <numeric>

namespace trireme::checkpoint {
namespace {

constexpr std::size_t max_named_tensors = 8;

std::vector<std::string> tensors_in(const Manifest& manifest, std::size_t file, std::uint64_t begin,
                                    std::uint64_t end) {
  std::vector<std::string> names;
  const auto& contents = manifest.contents;
  const auto meets = [&](const TensorPart& part) {
    const auto& bucket = contents.buckets[part.bucket];
    const auto position = bucket.files.position_of(file);
    if (!position) return false;
    const auto slice = contents.slice_at(part, *position);
    const auto bytes =
        (slice.end - slice.begin) * static_cast<std::int64_t>(device::size_of(bucket.dtype));
    return bytes > 0 && slice.byte < end && begin < slice.byte + static_cast<std::uint64_t>(bytes);
  };
  for (const auto& tensor : contents.tensors) {
    if (std::any_of(tensor.parts.begin(), tensor.parts.end(), meets)) names.push_back(tensor.name);
  }
  return names;
}

std::string names_text(const std::vector<std::string>& names) {
  if (names.empty()) return "no tensor, only HDF5's own structure";
  const auto shown = std::min(names.size(), max_named_tensors);
  auto text = base::format(
      "{}", base::join(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
  if (names.size() > shown) text += base::format(" and {} more", names.size() - shown);
  return text;
}

}  // namespace

std::string manifest_text_of(const std::filesystem::path& step_folder, const ReadAccess& access) {
  const auto path = step_folder / "manifest.json";
  const StoredBytes file(path, access);
  if (!file.is_regular() || file.size() > Manifest::max_text_bytes) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' is not a regular file of at most {} (no manifest is "
                                   "larger)",
                                   path.string(), base::bytes_text(Manifest::max_text_bytes)));
  }
  std::string text(static_cast<std::size_t>(file.size()), '\0');
  file.read(std::as_writable_bytes(std::span(text.data(), text.size())), 0);
  return text;
}

base::Result<Manifest> read_manifest(const std::filesystem::path& step_folder) {
  std::string text;
  try {
    text = manifest_text_of(step_folder, {});
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
  return manifest_from(step_folder, text);
}

base::Result<Manifest> manifest_from(const std::filesystem::path& step_folder,
                                     std::string_view text) {
  const auto source = (step_folder / "manifest.json").string();
  auto manifest = parse_manifest(text, source);
  const auto named = parse_folder_name(step_folder.filename().string());
  if (!manifest.ok() || !named || named->step == manifest->step) return manifest;
  return base::Failure{
      base::ExitCode::checkpoint,
      base::format(
          "'{}' is the manifest of step {}, but its folder is named as step {} (a copy went "
          "wrong, or the folder was renamed); use another step or give the folder its name",
          source, manifest->step, named->step)};
}

std::filesystem::path path_of_file(const std::filesystem::path& step_folder,
                                   const Manifest& manifest, std::size_t file) {
  const auto folder = manifest.files_in(step_folder);
  std::error_code ignored;
  if (!manifest.folder.empty() && !store::is_url(folder) &&
      std::filesystem::is_symlink(folder, ignored)) {
    throw base::Error(base::ExitCode::checkpoint,
                      base::format("'{}' is a symbolic link (a step's files lie in its own "
                                   "folder); copy them there, or use another step",
                                   folder.string()));
  }
  return folder / manifest.files[file].name;
}

BlockReader::BlockReader(const std::filesystem::path& step_folder, const Manifest& manifest,
                         std::size_t file, const ReadAccess& access)
    : stored_(&manifest.files[file]),
      path_(path_of_file(step_folder, manifest, file)),
      block_bytes_(manifest.block_bytes),
      block_count_(manifest.block_count(*stored_)),
      bytes_(path_, access) {
  const auto expected = manifest.stored_bytes(*stored_);
  if (bytes_.is_regular() && bytes_.size() == expected) return;
  throw base::Error(base::ExitCode::checkpoint, size_text(path_.native(), bytes_.size(), expected));
}

std::string no_object_text(std::string_view path) {
  return base::format("cannot open '{}': there is no such object", path);
}

std::string size_text(std::string_view path, std::uint64_t bytes, std::uint64_t expected) {
  return base::format(
      "'{}' has {} bytes but its manifest says {} (it was cut or replaced); use "
      "another step or restore the file",
      path, bytes, expected);
}

std::uint64_t BlockReader::block_end(std::uint64_t block) const {
  return std::min(block_begin(block) + block_bytes_, stored_->bytes);
}

std::optional<Damage> BlockReader::load_checksums() {
  if (!stored_->crc32c.empty()) {
    checksums_ = stored_->crc32c;
    return std::nullopt;
  }
  checksums_.resize(block_count_);
  const auto bytes = std::as_writable_bytes(std::span(checksums_));
  bytes_.read(bytes, stored_->bytes);
  bool good = base::hexadecimal(base::sha256(bytes)) == stored_->checksums_sha256;
  if (!stored_->digests_sha256.empty()) {
    digests_.resize(block_count_);
    const auto digests = std::as_writable_bytes(std::span(digests_));
    bytes_.read(digests, stored_->bytes + bytes.size());
    good = good && base::hexadecimal(base::sha256(digests)) == stored_->digests_sha256;
  }
  if (good) return std::nullopt;
  return Damage{stored_->name,
                stored_->bytes,
                stored_->bytes + bytes.size(),
                {},
                base::format("'{}' is damaged from byte {} on (the checksums of its blocks are not "
                             "those that the manifest knows, so that nothing in it can be trusted; "
                             "damaged, or a file of another step); use another step or restore the "
                             "file",
                             path_.string(), stored_->bytes)};
}

void BlockReader::open_directly() {
  if (block_bytes_ % OutputFile::direct_alignment == 0) bytes_.open_directly();
}

std::span<const std::byte> BlockReader::read_run(std::uint64_t first, std::uint64_t count,
                                                 AlignedMemory& memory, const Visit& visit) const {
  TRIREME_EXPECT(count > 0 && count <= max_run && first + count <= block_count_,
                 "blocks of the file");
  const auto begin = block_begin(first);
  const auto needed = block_end(first + count - 1) - begin;
  const std::span buffer(memory.at_least(max_run * block_bytes_), count * block_bytes_);
  bytes_.read_directly(buffer, begin, needed);
  for (auto block = first; block < first + count; ++block) {
    const auto bytes =
        buffer.subspan(block_begin(block) - begin, block_end(block) - block_begin(block));
    const bool matches = base::crc32c(bytes) == checksums_[block] &&
                         (digests_.empty() || base::sha256(bytes) == digests_[block]);
    visit(block, bytes, matches);
  }
  return buffer.first(needed);
}

std::vector<std::uint64_t> BlockReader::all_blocks() const {
  std::vector<std::uint64_t> blocks(block_count_);
  std::iota(blocks.begin(), blocks.end(), std::uint64_t{0});
  return blocks;
}

void BlockReader::read_all(std::span<const std::uint64_t> blocks, int threads, const Visit& visit,
                           const std::function<void()>& on_failure) const {
  std::vector<std::span<const std::uint64_t>> runs;
  for (std::size_t at = 0; at < blocks.size(); at += runs.back().size()) {
    std::size_t count = 1;
    while (count < max_run && at + count < blocks.size() &&
           blocks[at + count] == blocks[at] + count) {
      ++count;
    }
    runs.push_back(blocks.subspan(at, count));
  }
  const auto read = [&](std::size_t index) {
    thread_local AlignedMemory memory;
    read_run(runs[index].front(), runs[index].size(), memory, visit);
  };
  parallel_for(runs.size(), reading_threads(path_, threads), read, on_failure);
}

void verify_file(const std::filesystem::path& step_folder, const Manifest& manifest,
                 std::size_t file, const ReadAccess& access) {
  BlockReader reader(step_folder, manifest, file, access);
  if (const auto damage = reader.load_checksums()) {
    throw base::Error(base::ExitCode::checkpoint, damage->text);
  }
  reader.read_all(reader.all_blocks(), 0,
                  [&](std::uint64_t block, std::span<const std::byte> bytes, bool matches) {
                    if (matches) return;
                    throw_damage(step_folder, manifest, file, reader.block_begin(block),
                                 bytes.size());
                  });
}

void throw_damage(const std::filesystem::path& step_folder, const Manifest& manifest,
                  std::size_t file, std::uint64_t begin, std::size_t bytes) {
  throw base::Error(base::ExitCode::checkpoint,
                    checksum_damage(step_folder, manifest, file, begin, begin + bytes).text);
}

Damage checksum_damage(const std::filesystem::path& step_folder, const Manifest& manifest,
                       std::size_t file, std::uint64_t begin, std::uint64_t end) {
  Damage damage{manifest.files[file].name, begin, end, tensors_in(manifest, file, begin, end), {}};
  const bool has_digests = !manifest.files[file].digests_sha256.empty();
  damage.text = base::format(
      "'{}' is damaged in bytes {} to {} (their {} does not match; they hold {}); use "
      "another step or restore the file",
      (manifest.files_in(step_folder) / damage.file).string(), begin, end,
      has_digests ? "checksum or SHA-256" : "checksum", names_text(damage.tensors));
  return damage;
}

}  // namespace trireme::checkpoint
