// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/step_output.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"
#include "trireme/base/random_id.hpp"
#include "trireme/checkpoint/output_file.hpp"

#include "checkpoint/objects/object_file.hpp"

#include <fcntl.h>

#include <cerrno>
#include <utility>

namespace trireme::checkpoint {
namespace {

namespace fs = std::filesystem;

class FileOutput : public StepOutput {
 public:
  FileOutput(FileSystem& files, const fs::path& path, OutputFile::Kind kind)
      : file_(files, path, kind) {}

  std::uint64_t size() const { return file_.size(); }
  void prepare(std::uint64_t bytes) {
    file_.allocate(bytes);
    file_.write_directly();
  }
  void read(std::span<std::byte> bytes, std::uint64_t offset) const override {
    file_.read(bytes, offset);
  }
  void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    file_.write(bytes, offset);
    file_.start_writeback(offset, bytes.size());
  }
  void finish() override { file_.finish(); }

 private:
  OutputFile file_;
};

/// An object; the structure lies in a file that has no name.
class ObjectOutput : public StepOutput {
 public:
  ObjectOutput(const fs::path& url, std::uint64_t bytes, base::File structure)
      : object_(url, bytes), structure_(std::move(structure)) {}

  void read(std::span<std::byte> bytes, std::uint64_t offset) const override {
    TRIREME_EXPECT(structure_, "bytes of HDF5's own are read where it has written some");
    base::read_at(structure_, bytes, offset, "structure.h5");
  }
  void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    object_.write(bytes, offset);
  }
  void finish() override { object_.finish(); }

 private:
  ObjectFile object_;
  base::File structure_;
};

struct Unnamed {
  base::File file;
  std::uint64_t bytes;
};

/// Makes a file in the folder for temporary ones, opens it, and takes its name away.
Unnamed create_unnamed(const std::function<void(const fs::path&)>& create) {
  const auto path =
      fs::temp_directory_path() / base::format("trireme-structure-{}.h5", base::random_id());
  std::error_code ignored;
  try {
    create(path);
    Unnamed made{
        base::value_or_throw(base::open_file(path, O_RDONLY, 0, base::ExitCode::checkpoint)),
        fs::file_size(path)};
    fs::remove(path, ignored);
    return made;
  } catch (...) {
    fs::remove(path, ignored);
    throw;
  }
}

}  // namespace

StructuredOutput create_structured(
    FileSystem& files, const fs::path& path, const std::function<void(const fs::path&)>& create,
    const std::function<std::uint64_t(std::uint64_t bytes)>& stored_bytes) {
  if (store::is_url(path)) {
    auto [structure, bytes] = create_unnamed(create);
    auto output = std::make_unique<ObjectOutput>(path, stored_bytes(bytes), std::move(structure));
    return {bytes, std::move(output)};
  }
  if (files.before_hdf5(path) != 0) throw_storage_error("write the structure of", path, errno);
  create(path);
  auto output = std::make_unique<FileOutput>(files, path, OutputFile::Kind::existing);
  const auto bytes = output->size();
  output->prepare(stored_bytes(bytes));
  return {bytes, std::move(output)};
}

std::unique_ptr<StepOutput> create_copy(FileSystem& files, const fs::path& path,
                                        std::uint64_t stored_bytes) {
  if (store::is_url(path)) {
    return std::make_unique<ObjectOutput>(path, stored_bytes, base::File());
  }
  auto output = std::make_unique<FileOutput>(files, path, OutputFile::Kind::fresh);
  output->prepare(stored_bytes);
  return output;
}

}  // namespace trireme::checkpoint
