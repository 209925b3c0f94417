// SPDX-License-Identifier: Apache-2.0
#include "checkpoint/save/file_record.hpp"

#include "trireme/base/contract.hpp"
#include "trireme/comm/bytes.hpp"

#include "checkpoint/save/step_files.hpp"

#include <algorithm>
#include <cstring>

namespace trireme::checkpoint {

FileRecord::FileRecord(const StoredFile& file) : bytes(file.bytes) {
  TRIREME_EXPECT(file.checksums_sha256.size() == checksums_sha256.size(),
                 "a SHA-256 has 64 hexadecimal digits");
  std::copy(file.checksums_sha256.begin(), file.checksums_sha256.end(), checksums_sha256.begin());
  std::copy_n(file.digests_sha256.begin(),
              std::min(digests_sha256.size(), file.digests_sha256.size()), digests_sha256.begin());
}

StoredFile FileRecord::file_of(std::size_t rank) const {
  StoredFile file{shard_name(rank), bytes, {checksums_sha256.begin(), checksums_sha256.end()}};
  if (digests_sha256[0] != '\0') {
    file.digests_sha256.assign(digests_sha256.begin(), digests_sha256.end());
  }
  return file;
}

std::vector<StoredFile> gather_files(const StoredFile& mine, comm::ProcessGroup& world) {
  const FileRecord record(mine);
  std::vector<StoredFile> files;
  for (const auto& bytes :
       comm::gather_bytes(world, {reinterpret_cast<const char*>(&record), sizeof record})) {
    FileRecord theirs;
    std::memcpy(&theirs, bytes.data(), sizeof theirs);
    files.push_back(theirs.file_of(files.size()));
  }
  return files;
}

}  // namespace trireme::checkpoint
