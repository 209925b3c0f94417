// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/hdf5/hdf5.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/file_system.hpp"

#include <hdf5.h>

#include <algorithm>
#include <array>
#include <cstring>

namespace trireme::checkpoint::hdf5 {
namespace {

static_assert(std::is_same_v<hid_t, std::int64_t>);

/// The library's error stack of this thread, innermost call last.
std::string error_stack() {
  std::string text;
  const auto append = [](unsigned /*depth*/, const H5E_error2_t* error, void* out) -> herr_t {
    auto& list = *static_cast<std::string*>(out);
    if (!list.empty()) list += " <- ";
    list += base::format("{}: {}", error->func_name, error->desc != nullptr ? error->desc : "");
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, append, &text);
  return text.empty() ? "no reason given" : text;
}

[[noreturn]] void fail(std::string_view doing) {
  throw base::Error(base::ExitCode::checkpoint,
                    base::format("HDF5 cannot {}: {}", doing, error_stack()));
}

hid_t valid(hid_t id, std::string_view doing) {
  if (id < 0) fail(doing);
  return id;
}

void done(herr_t status, std::string_view doing) {
  if (status < 0) fail(doing);
}

/// Initialization of the library, called before any other use.
void prepare_library() {
  // At exit the library would close open files: the only ones are those whose closing failed, and
  // they can make it crash.
  static const herr_t once = H5dont_atexit();
  static_cast<void>(once);
  // Failures are reported by exceptions alone, not printed; the setting belongs to a thread.
  H5Eset_auto2(H5E_DEFAULT, nullptr, nullptr);
}

PropertyList make_list(hid_t list_class) {
  return PropertyList::adopt(valid(H5Pcreate(list_class), "create a property list"));
}

/// Properties of an object that says nothing of the time: the same values make the same file, on
/// every rank that writes it.
PropertyList timeless_list(hid_t list_class) {
  auto list = make_list(list_class);
  done(H5Pset_obj_track_times(list.get(), false), "leave out the time");
  return list;
}

PropertyList intermediate_groups() {
  auto list = make_list(H5P_LINK_CREATE);
  done(H5Pset_create_intermediate_group(list.get(), 1), "set the creation of groups");
  return list;
}

Dataset create_dataset(const File& file, const std::string& path, hid_t type, const Space& space,
                       const PropertyList& creation) {
  const auto links = intermediate_groups();
  return Dataset::adopt(valid(H5Dcreate2(file.get(), path.c_str(), type, space.get(), links.get(),
                                         creation.get(), H5P_DEFAULT),
                              base::format("create dataset '{}'", path)));
}

std::vector<hsize_t> sizes(const layout::Shape& shape) {
  return {shape.begin(), shape.end()};
}

void write_attribute_of(hid_t object, const std::string& name, hid_t type, const Space& space,
                        const void* values) {
  const auto doing = base::format("write attribute '{}'", name);
  auto attribute = Attribute::adopt(
      valid(H5Acreate2(object, name.c_str(), type, space.get(), H5P_DEFAULT, H5P_DEFAULT), doing));
  done(H5Awrite(attribute.get(), type, values), doing);
  close(attribute);
}

/// No locking: each file has one writer by construction, and locks fail on some parallel file
/// systems.
PropertyList file_access() {
  auto access = make_list(H5P_FILE_ACCESS);
  done(H5Pset_file_locking(access.get(), 0, 1), "switch off file locks");
  return access;
}

Type copied_type(hid_t type) {
  return Type::adopt(valid(H5Tcopy(type), "copy a type"));
}

void set_size(const Type& type, std::size_t bytes) {
  done(H5Tset_size(type.get(), bytes), "set the size of a type");
}

Type text_type(std::size_t bytes) {
  auto type = copied_type(H5T_C_S1);
  set_size(type, bytes);
  done(H5Tset_strpad(type.get(), H5T_STR_NULLPAD), "set the padding of a text type");
  return type;
}

Type bf16_type() {
  auto type = copied_type(H5T_IEEE_F32LE);
  // Fields first: a float must hold them when it shrinks to two bytes.
  done(H5Tset_fields(type.get(), 15, 7, 8, 0, 7), "set the fields of bf16");
  set_size(type, 2);
  done(H5Tset_ebias(type.get(), 127), "set the exponent's bias of bf16");
  return type;
}

}  // namespace

template <>
const char* Traits<Kind::file>::name() {
  return "HDF5 file";
}
template <>
const char* Traits<Kind::dataset>::name() {
  return "HDF5 dataset";
}
template <>
const char* Traits<Kind::space>::name() {
  return "HDF5 data space";
}
template <>
const char* Traits<Kind::type>::name() {
  return "HDF5 data type";
}
template <>
const char* Traits<Kind::property_list>::name() {
  return "HDF5 property list";
}
template <>
const char* Traits<Kind::attribute>::name() {
  return "HDF5 attribute";
}

namespace {
std::optional<std::string> closed(herr_t status) {
  if (status >= 0) return std::nullopt;
  return error_stack();
}
}  // namespace

template <>
std::optional<std::string> Traits<Kind::file>::close(raw_type raw) {
  return closed(H5Fclose(raw));
}
template <>
std::optional<std::string> Traits<Kind::dataset>::close(raw_type raw) {
  return closed(H5Dclose(raw));
}
template <>
std::optional<std::string> Traits<Kind::space>::close(raw_type raw) {
  return closed(H5Sclose(raw));
}
template <>
std::optional<std::string> Traits<Kind::type>::close(raw_type raw) {
  return closed(H5Tclose(raw));
}
template <>
std::optional<std::string> Traits<Kind::property_list>::close(raw_type raw) {
  return closed(H5Pclose(raw));
}
template <>
std::optional<std::string> Traits<Kind::attribute>::close(raw_type raw) {
  return closed(H5Aclose(raw));
}

File create_file(const std::filesystem::path& path) {
  prepare_library();
  const auto access = file_access();
  // Streams, because the other drivers ask for the name behind a symbolic link, which a file in
  // memory does not have.
  done(H5Pset_fapl_stdio(access.get()), "choose the driver of files");
  done(H5Pset_libver_bounds(access.get(), H5F_LIBVER_LATEST, H5F_LIBVER_LATEST),
       "set the file format");
  done(H5Pset_alignment(access.get(), alignment_threshold_bytes, alignment_bytes),
       "set the alignment");
  const auto creation = timeless_list(H5P_FILE_CREATE);
  return File::adopt(valid(H5Fcreate(path.c_str(), H5F_ACC_TRUNC, creation.get(), access.get()),
                           base::format("create '{}'", path.string())));
}

File open_file(const std::filesystem::path& path) {
  prepare_library();
  const auto access = file_access();
  return File::adopt(valid(H5Fopen(path.c_str(), H5F_ACC_RDONLY, access.get()),
                           base::format("open '{}'", path.string())));
}

Type element_type(device::DType dtype) {
  switch (dtype) {
    case device::DType::f32:
      return copied_type(H5T_IEEE_F32LE);
    case device::DType::bf16:
      return bf16_type();
    case device::DType::i32:
      return copied_type(H5T_STD_I32LE);
    case device::DType::e4m3:
      break;
  }
  throw base::Error(base::ExitCode::internal, "unknown element type");
}

Space create_simple(const layout::Shape& shape) {
  const auto lengths = sizes(shape);
  return Space::adopt(
      valid(H5Screate_simple(static_cast<int>(lengths.size()), lengths.data(), nullptr),
            "create a data space"));
}

void select_hyperslab(const Space& space, const layout::Box& box) {
  const auto offset = sizes(box.offset);
  const auto length = sizes(box.length);
  done(H5Sselect_hyperslab(space.get(), H5S_SELECT_SET, offset.data(), nullptr, length.data(),
                           nullptr),
       "select a box");
}

Dataset create_contiguous(const File& file, const std::string& path, const Type& type,
                          const layout::Shape& shape) {
  const auto creation = timeless_list(H5P_DATASET_CREATE);
  done(H5Pset_layout(creation.get(), H5D_CONTIGUOUS), "set the storage layout");
  done(H5Pset_alloc_time(creation.get(), H5D_ALLOC_TIME_EARLY), "set the allocation time");
  done(H5Pset_fill_time(creation.get(), H5D_FILL_TIME_NEVER), "set the fill time");
  return create_dataset(file, path, type.get(), create_simple(shape), creation);
}

Dataset open_dataset(const File& file, const std::string& path) {
  return Dataset::adopt(valid(H5Dopen2(file.get(), path.c_str(), H5P_DEFAULT),
                              base::format("open dataset '{}'", path)));
}

Type type_of(const Dataset& dataset) {
  return Type::adopt(valid(H5Dget_type(dataset.get()), "read a dataset's type"));
}

std::uint64_t storage_offset(const Dataset& dataset) {
  const haddr_t offset = H5Dget_offset(dataset.get());
  if (offset == HADDR_UNDEF) fail("tell where a dataset lies");
  return offset;
}

void read_values(const Dataset& dataset, device::DType dtype, const layout::Shape& shape,
                 const layout::Box& box, std::span<std::byte> values) {
  TRIREME_EXPECT(values.size() ==
                     static_cast<std::size_t>(layout::element_count(box)) * device::size_of(dtype),
                 "the box's values have room");
  const auto stored = create_simple(shape);
  select_hyperslab(stored, box);
  const auto held = create_simple(box.length);
  done(H5Dread(dataset.get(), element_type(dtype).get(), held.get(), stored.get(), H5P_DEFAULT,
               values.data()),
       "read values");
}

PropertyList virtual_layout() {
  return timeless_list(H5P_DATASET_CREATE);
}

void set_virtual(const PropertyList& layout, const Space& where, const std::string& file,
                 const std::string& dataset, const Space& source) {
  done(H5Pset_virtual(layout.get(), where.get(), file.c_str(), dataset.c_str(), source.get()),
       base::format("refer to dataset '{}' of '{}'", dataset, file));
}

void create_virtual(const File& file, const std::string& path, const Type& type,
                    const layout::Shape& shape, const PropertyList& layout) {
  auto dataset = create_dataset(file, path, type.get(), create_simple(shape), layout);
  close(dataset);
}

void write_attribute(const File& file, const std::string& name, std::string_view text) {
  const auto type = text_type(std::max<std::size_t>(text.size(), 1));
  const std::string bytes(text.empty() ? std::string(1, '\0') : std::string(text));
  write_attribute_of(file.get(), name, type.get(), create_simple({1}), bytes.data());
}

namespace {

constexpr std::size_t table_dimensions = 4;
/// Shape, offset or length, padded with zeros.
using TableNumbers = std::array<std::int64_t, table_dimensions>;

std::size_t table_name_bytes(const std::vector<TableRow>& rows) {
  std::size_t bytes = 1;
  for (const auto& row : rows) bytes = std::max(bytes, row.tensor.size());
  return bytes;
}

std::size_t table_row_bytes(std::size_t name_bytes) {
  return name_bytes + sizeof(std::int64_t) + 3 * sizeof(TableNumbers);
}

std::vector<char> table_bytes(const std::vector<TableRow>& rows, std::size_t name_bytes) {
  std::vector<char> bytes(table_row_bytes(name_bytes) * rows.size(), 0);
  char* out = bytes.data();
  for (const auto& row : rows) {
    std::copy(row.tensor.begin(), row.tensor.end(), out);
    out += name_bytes;
    std::memcpy(out, &row.first_element, sizeof(std::int64_t));
    out += sizeof(std::int64_t);
    for (const auto* numbers : {&row.shape, &row.box.offset, &row.box.length}) {
      TRIREME_EXPECT(numbers->size() <= table_dimensions, "a tensor has at most four dimensions");
      std::memcpy(out, numbers->data(), numbers->size() * sizeof(std::int64_t));
      out += sizeof(TableNumbers);
    }
  }
  return bytes;
}

Type table_type(std::size_t name_bytes) {
  const std::array<hsize_t, 1> lengths{table_dimensions};
  const auto numbers = Type::adopt(
      valid(H5Tarray_create2(H5T_STD_I64LE, 1, lengths.data()), "create an array type"));
  const auto text = text_type(name_bytes);
  auto type = Type::adopt(
      valid(H5Tcreate(H5T_COMPOUND, table_row_bytes(name_bytes)), "create a compound type"));
  std::size_t offset = 0;
  const auto insert = [&](const char* member, hid_t member_type, std::size_t member_bytes) {
    done(H5Tinsert(type.get(), member, offset, member_type), "describe a table's row");
    offset += member_bytes;
  };
  insert("tensor", text.get(), name_bytes);
  insert("first_element", H5T_STD_I64LE, sizeof(std::int64_t));
  for (const char* member : {"shape", "box_offset", "box_length"}) {
    insert(member, numbers.get(), sizeof(TableNumbers));
  }
  return type;
}

}  // namespace

void write_table(const File& file, const std::string& path, const std::vector<TableRow>& rows) {
  const auto name_bytes = table_name_bytes(rows);
  const auto bytes = table_bytes(rows, name_bytes);
  const auto type = table_type(name_bytes);
  auto dataset = create_dataset(file, path, type.get(),
                                create_simple({static_cast<std::int64_t>(rows.size())}),
                                timeless_list(H5P_DATASET_CREATE));
  done(H5Dwrite(dataset.get(), type.get(), H5S_ALL, H5S_ALL, H5P_DEFAULT, bytes.data()),
       base::format("write table '{}'", path));
  close(dataset);
}

}  // namespace trireme::checkpoint::hdf5
