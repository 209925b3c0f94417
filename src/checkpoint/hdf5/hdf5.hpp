// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/error.hpp"
#include "trireme/base/handle.hpp"
#include "trireme/device/dtype.hpp"
#include "trireme/layout/box.hpp"

#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

/// The part of the HDF5 library that checkpoints use; each of its functions is called in one
/// place. Failures throw base::Error (checkpoint) with the library's own error stack as text.
namespace trireme::checkpoint::hdf5 {

enum class Kind { file, dataset, space, type, property_list, attribute };

/// Handle type of one kind of object; a raw handle is the library's 64-bit id.
template <Kind kind>
struct Traits {
  using raw_type = std::int64_t;
  static raw_type null() { return -1; }
  static const char* name();
  static std::optional<std::string> close(raw_type raw);
};
using File = base::UniqueHandle<Traits<Kind::file>>;
using Dataset = base::UniqueHandle<Traits<Kind::dataset>>;
using Space = base::UniqueHandle<Traits<Kind::space>>;
using Type = base::UniqueHandle<Traits<Kind::type>>;
using PropertyList = base::UniqueHandle<Traits<Kind::property_list>>;
using Attribute = base::UniqueHandle<Traits<Kind::attribute>>;

/// Closes and throws Error (checkpoint) when that fails, as it does on a full disk.
template <Kind kind>
void close(base::UniqueHandle<Traits<kind>>& handle) {
  if (const auto status = handle.close(); !status.ok()) {
    throw base::Error(base::ExitCode::checkpoint, status.failure().text);
  }
}

/// Objects of at least this many bytes begin at multiples of `alignment_bytes`.
constexpr std::uint64_t alignment_threshold_bytes = std::uint64_t{64} << 10;
constexpr std::uint64_t alignment_bytes = std::uint64_t{1} << 20;

/// Replaces what is at the path by a file in the newest format, which a reader refuses when it was
/// not closed well.
File create_file(const std::filesystem::path& path);
File open_file(const std::filesystem::path& path);

/// Little-endian; bf16 as a float of 1 sign, 8 exponent (bias 127) and 7 mantissa bits.
Type element_type(device::DType dtype);

Space create_simple(const layout::Shape& shape);
/// Selects the box of `space` for its next use.
void select_hyperslab(const Space& space, const layout::Box& box);

/// Makes a contiguous dataset whose storage is allocated now and never filled; missing groups are
/// made.
Dataset create_contiguous(const File& file, const std::string& path, const Type& type,
                          const layout::Shape& shape);
Dataset open_dataset(const File& file, const std::string& path);
Type type_of(const Dataset& dataset);
/// Byte of the file at which the elements begin.
std::uint64_t storage_offset(const Dataset& dataset);

/// Reads a box of the dataset, row-major, as elements of this type.
void read_values(const Dataset& dataset, device::DType dtype, const layout::Shape& shape,
                 const layout::Box& box, std::span<std::byte> values);

/// Layout of a dataset made of boxes of datasets in other files, which are found beside this one.
PropertyList virtual_layout();
void set_virtual(const PropertyList& layout, const Space& where, const std::string& file,
                 const std::string& dataset, const Space& source);
void create_virtual(const File& file, const std::string& path, const Type& type,
                    const layout::Shape& shape, const PropertyList& layout);

void write_attribute(const File& file, const std::string& name, std::string_view text);

/// Row of the table that says which run of a dataset is which box of which tensor.
struct TableRow {
  std::string tensor;
  std::int64_t first_element;
  layout::Shape shape;
  layout::Box box;
};
void write_table(const File& file, const std::string& path, const std::vector<TableRow>& rows);

}  // namespace trireme::checkpoint::hdf5
