// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/step_output.hpp"

#include "trireme/checkpoint/output_file.hpp"

#include "checkpoint/objects/object_file.hpp"

#include <algorithm>

namespace trireme::checkpoint {
namespace {

class FileOutput : public StepOutput {
 public:
  FileOutput(FileSystem& files, const std::filesystem::path& path, std::uint64_t bytes)
      : file_(files, path) {
    file_.allocate(bytes);
    file_.write_directly();
  }

  void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    file_.write(bytes, offset);
  }
  void write_sparse(std::span<const std::byte> bytes, std::uint64_t offset) override {
    static constexpr auto page = OutputFile::direct_alignment;
    const auto is_zero = [bytes](std::size_t at) {
      const auto values = bytes.subspan(at, std::min(page, bytes.size() - at));
      return std::all_of(values.begin(), values.end(),
                         [](std::byte value) { return value == std::byte{0}; });
    };
    std::size_t begin = 0;  // of pages that are not zero
    for (std::size_t at = 0; at < bytes.size(); at += page) {
      if (!is_zero(at)) continue;
      if (begin < at) write(bytes.subspan(begin, at - begin), offset + begin);
      begin = at + page;
    }
    if (begin < bytes.size()) write(bytes.subspan(begin), offset + begin);
  }
  /// No write waits for another.
  void abandon() override {}
  void finish() override { file_.finish(); }

 private:
  OutputFile file_;
};

class ObjectOutput : public StepOutput {
 public:
  ObjectOutput(const std::filesystem::path& url, std::uint64_t bytes) : object_(url, bytes) {}

  void write(std::span<const std::byte> bytes, std::uint64_t offset) override {
    object_.write(bytes, offset);
  }
  void write_sparse(std::span<const std::byte> bytes, std::uint64_t offset) override {
    object_.write(bytes, offset);
  }
  void abandon() override { object_.abandon(); }
  void finish() override { object_.finish(); }

 private:
  ObjectFile object_;
};

}  // namespace

std::unique_ptr<StepOutput> create_output(FileSystem& files, const std::filesystem::path& path,
                                          std::uint64_t bytes) {
  if (store::is_url(path)) return std::make_unique<ObjectOutput>(path, bytes);
  return std::make_unique<FileOutput>(files, path, bytes);
}

}  // namespace trireme::checkpoint
