// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/folders.hpp"
#include "trireme/checkpoint/signature.hpp"

#include "checkpoint/load/stored_file.hpp"
#include "checkpoint/objects/objects.hpp"
#include "checkpoint/parallel.hpp"
#include "checkpoint/steps/deep_check.hpp"

#include <algorithm>
#include <iterator>
#include <mutex>
#include <utility>
#include <vector>

namespace trireme::checkpoint {
namespace {

/// Neighbouring bad blocks become one damage.
void add_bad_blocks(const std::filesystem::path& step_folder, const Manifest& manifest,
                    std::size_t file, const BlockReader& reader,
                    const std::vector<std::uint64_t>& bad, VerifyReport& report) {
  for (std::size_t index = 0; index < bad.size();) {
    auto end = index + 1;
    while (end < bad.size() && bad[end] == bad[end - 1] + 1) ++end;
    report.damages.push_back(checksum_damage(step_folder, manifest, file,
                                             reader.block_begin(bad[index]),
                                             reader.block_end(bad[end - 1])));
    index = end;
  }
}

void check_blocks(const std::filesystem::path& step_folder, const Manifest& manifest,
                  std::size_t file, BlockReader& reader, int threads, VerifyReport& report) {
  reader.open_directly();
  std::mutex mutex;
  std::vector<std::uint64_t> bad;
  reader.read_all(reader.all_blocks(), threads,
                  [&](std::uint64_t block, std::span<const std::byte> bytes, bool matches) {
                    const std::lock_guard lock(mutex);
                    report.checked_bytes += bytes.size();
                    if (!matches) bad.push_back(block);
                  });
  std::sort(bad.begin(), bad.end());
  add_bad_blocks(step_folder, manifest, file, reader, bad, report);
}

/// The manifest, if it is signed with the key.
base::Result<Manifest> read_signed(const std::filesystem::path& step_folder, std::string_view key) {
  try {
    const auto text = manifest_text_of(step_folder, {});
    const auto source = (step_folder / "manifest.json").string();
    if (auto status = check_signature(text, source, key); !status) return status.failure();
    return manifest_from(step_folder, text);
  } catch (const base::Error& error) {
    return base::Failure{error.code(), error.what()};
  }
}

/// The sizes of objects, which a listing tells a thousand at a time.
void check_sizes(const std::filesystem::path& step, const Manifest& manifest,
                 VerifyReport& report) {
  const auto folder = manifest.files_in(step);
  const auto objects = objects::objects_in(folder);
  for (const auto& file : manifest.files) {
    const auto found = objects.find(file.name);
    const auto bytes = manifest.stored_bytes(file);
    if (found != objects.end() && found->second == bytes) continue;
    const auto path = (folder / file.name).string();
    report.damages.push_back(
        {file.name,
         0,
         0,
         {},
         found == objects.end() ? no_object_text(path) : size_text(path, found->second, bytes)});
  }
}

/// Damages of one file.
VerifyReport check_file(const std::filesystem::path& step_folder, const Manifest& manifest,
                        std::size_t file, VerifyLevel level, int threads) {
  VerifyReport report{step_folder, {}, 0};
  try {
    BlockReader reader(step_folder, manifest, file);
    if (level == VerifyLevel::quick) return report;
    if (auto damage = reader.load_checksums()) {
      report.damages.push_back(std::move(*damage));
      return report;
    }
    check_blocks(step_folder, manifest, file, reader, threads, report);
  } catch (const base::Error& error) {
    report.damages.push_back({manifest.files[file].name, 0, 0, {}, error.what()});
  }
  return report;
}

/// Damages of all files, in their order. While the last bytes of one file are awaited, the next is
/// read.
void check_files(const std::filesystem::path& step_folder, const Manifest& manifest,
                 VerifyLevel level, int threads, VerifyReport& report) {
  constexpr int files_at_once = 2;
  std::vector<VerifyReport> parts(manifest.files.size());
  parallel_for(parts.size(), files_at_once, [&](std::size_t file) {
    parts[file] = check_file(step_folder, manifest, file, level, threads);
  });
  for (auto& part : parts) {
    report.checked_bytes += part.checked_bytes;
    std::move(part.damages.begin(), part.damages.end(), std::back_inserter(report.damages));
  }
}

}  // namespace

VerifyReport verify(const std::filesystem::path& step_folder, VerifyLevel level, int threads,
                    std::string_view key) {
  VerifyReport report{step_folder, {}, 0};
  const auto manifest = key.empty() ? read_manifest(step_folder) : read_signed(step_folder, key);
  if (!manifest) {
    report.damages.push_back({"manifest.json", 0, 0, {}, manifest.failure().text});
    return report;
  }
  if (!key.empty() && !manifest->has_digests()) report.not_covered = not_covered_text(step_folder);
  const bool are_objects = store::is_url(step_folder);
  if (are_objects && level == VerifyLevel::deep) {
    report.damages.push_back(
        {"master.h5",
         0,
         0,
         {},
         base::format("'{}' cannot be verified so deeply (HDF5 reads files, not objects); copy the "
                      "step into a folder, or verify it without --deep",
                      step_folder.string())});
    return report;
  }
  if (are_objects && level == VerifyLevel::quick) {
    check_sizes(step_folder, *manifest, report);
    return report;
  }
  check_files(step_folder, *manifest, level, threads, report);
  // Values of damaged files say nothing more.
  if (level == VerifyLevel::deep && report.good()) deep_check(step_folder, *manifest, report);
  return report;
}

}  // namespace trireme::checkpoint
