#include "checkpoint/stored_file.hpp"

#include "trireme/base/format.hpp"

#include "checkpoint/checksum.hpp"

#include <algorithm>

namespace trireme::checkpoint {
namespace {

constexpr std::size_t max_named_tensors = 8;

std::vector<std::string> tensors_in(const Manifest& manifest, std::size_t file, std::uint64_t begin,
                                    std::uint64_t end) {
  std::vector<std::string> names;
  for (const auto& tensor : manifest.tensors) {
    const auto size = device::size_of(tensor.dtype);
    const bool meets =
        std::any_of(tensor.boxes.begin(), tensor.boxes.end(), [&](const StoredBox& stored) {
          const auto bytes = static_cast<std::uint64_t>(layout::element_count(stored.box)) * size;
          return stored.file == file && stored.byte < end && begin < stored.byte + bytes;
        });
    if (meets) names.push_back(tensor.name);
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

BlockReader::BlockReader(const std::filesystem::path& step_folder, const Manifest& manifest,
                         std::size_t file, const ReadAccess& access)
    : stored_(&manifest.files[file]),
      block_bytes_(manifest.block_bytes),
      bytes_(step_folder / stored_->name, access) {
  if (bytes_.is_regular() && bytes_.size() == stored_->bytes) return;
  throw base::Error(
      base::ExitCode::checkpoint,
      base::format("'{}' has {} bytes but its manifest says {} (it was cut or replaced); use "
                   "another step or restore the file",
                   (step_folder / stored_->name).string(), bytes_.size(), stored_->bytes));
}

std::uint64_t BlockReader::block_end(std::uint64_t block) const {
  return std::min(block_begin(block) + block_bytes_, stored_->bytes);
}

bool BlockReader::read(std::uint64_t block, std::vector<std::byte>& buffer) const {
  buffer.resize(block_end(block) - block_begin(block));
  bytes_.read(buffer, block_begin(block));
  return crc32c(buffer) == stored_->crc32c[block];
}

Damage checksum_damage(const std::filesystem::path& step_folder, const Manifest& manifest,
                       std::size_t file, std::uint64_t begin, std::uint64_t end) {
  Damage damage{manifest.files[file].name, begin, end, tensors_in(manifest, file, begin, end), {}};
  damage.text = base::format(
      "'{}' is damaged in bytes {} to {} (their checksum does not match; they hold {}); use "
      "another step or restore the file",
      (step_folder / damage.file).string(), begin, end, names_text(damage.tensors));
  return damage;
}

}  // namespace trireme::checkpoint
