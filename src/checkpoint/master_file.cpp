#include "checkpoint/master_file.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include "checkpoint/hdf5.hpp"
#include "checkpoint/output_file.hpp"
#include "checkpoint/shard_file.hpp"

#include <algorithm>
#include <cerrno>

namespace trireme::checkpoint {
namespace {

/// The pieces of one file, in the order of their bytes, which is the order of placement within
/// every dataset.
struct FilePieces {
  std::vector<std::uint64_t> bytes;
  std::vector<PlacedBox> boxes;
  std::vector<PieceDataset> places;
};

std::vector<FilePieces> pieces_of_files(const Manifest& manifest) {
  struct Entry {
    std::uint64_t byte;
    PlacedBox box;
  };
  std::vector<std::vector<Entry>> entries(manifest.files.size());
  for (const auto& tensor : manifest.tensors) {
    for (const auto& stored : tensor.boxes) {
      entries[stored.file].push_back({stored.byte, {tensor.name, tensor.dtype, stored.box}});
    }
  }
  std::vector<FilePieces> files(entries.size());
  for (std::size_t index = 0; index < entries.size(); ++index) {
    std::sort(entries[index].begin(), entries[index].end(),
              [](const Entry& a, const Entry& b) { return a.byte < b.byte; });
    for (auto& entry : entries[index]) {
      files[index].bytes.push_back(entry.byte);
      files[index].boxes.push_back(std::move(entry.box));
    }
    files[index].places = place_in_datasets(files[index].boxes);
  }
  return files;
}

const PieceDataset& place_of(const FilePieces& pieces, std::uint64_t byte) {
  const auto found = std::lower_bound(pieces.bytes.begin(), pieces.bytes.end(), byte);
  return pieces.places[static_cast<std::size_t>(found - pieces.bytes.begin())];
}

void write_tensor(const hdf5::File& file, const Manifest& manifest, const StoredTensor& tensor,
                  const std::vector<FilePieces>& pieces) {
  const auto layout = hdf5::virtual_layout();
  const auto where = hdf5::simple_space(tensor.shape);
  for (const auto& stored : tensor.boxes) {
    hdf5::select(where, stored.box);
    const auto& place = place_of(pieces[stored.file], stored.byte);
    const auto source = hdf5::simple_space(
        place.whole_dataset ? stored.box.length : layout::Shape{place.arena_elements});
    if (!place.whole_dataset) {
      hdf5::select(source, {{place.first_element}, {layout::element_count(stored.box)}});
    }
    hdf5::add_source(layout, where, manifest.files[stored.file].name, place.path, source);
  }
  hdf5::create_virtual(file, tensor.name, hdf5::element_type(tensor.dtype), tensor.shape, layout);
}

/// HDF5's word that it wrote the file is not the only one.
void check(const std::filesystem::path& path, const Manifest& manifest) {
  auto file = hdf5::open_file(path);
  for (const auto& tensor : manifest.tensors) {
    auto dataset = hdf5::open_dataset(file, tensor.name);
    base::success_or_throw(dataset.close());
  }
  base::success_or_throw(file.close());
}

}  // namespace

StoredFile write_master(FileSystem& files, const std::filesystem::path& folder,
                        const Manifest& manifest) {
  const auto path = folder / master_name;
  if (files.before_hdf5(path) != 0) throw_storage_error("write", path, errno);
  auto file = hdf5::create_file(path);
  hdf5::write_attribute(file, "format", "trireme-checkpoint");
  hdf5::write_attribute(file, "step", std::to_string(manifest.step));
  const auto pieces = pieces_of_files(manifest);
  for (const auto& tensor : manifest.tensors) write_tensor(file, manifest, tensor, pieces);
  base::success_or_throw(file.close());
  check(path, manifest);
  OutputFile written(files, path, OutputFile::Kind::existing);
  const auto bytes = written.size();
  written.finish();
  return {master_name, bytes, block_checksums(path, bytes, manifest.block_bytes)};
}

}  // namespace trireme::checkpoint
