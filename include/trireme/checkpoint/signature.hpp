// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/result.hpp"
#include "trireme/comm/process_group.hpp"

#include <filesystem>
#include <string>
#include <string_view>

namespace trireme::checkpoint {

/// Signatures of manifests: HMAC-SHA-256 (RFC 2104) with a key that only the run's owner has, as
/// the last member but the digest. A digest tells damage; a signature tells who wrote. A manifest
/// that is signed has a SHA-256 of the SHA-256 of each file's blocks, so that its signature covers
/// every byte of the step.

/// Key in a file of 16 to 4096 bytes, a last newline left out, that nobody but its owner may read
/// or write. Failures (checkpoint) name the file.
base::Result<std::string> read_key_file(const std::filesystem::path& path);

/// Collective over the group. Key in the file on rank 0, which alone signs and reads manifests, and
/// nothing on the others; nothing at all without a path. Throws AgreedError as read_key_file()
/// fails.
std::string read_key_on_first_rank(const std::filesystem::path& path, comm::ProcessGroup& world);

/// Member `,\n"hmac_sha256":"<64 hexadecimal digits>"` behind these bytes of a manifest.
std::string signature_member(std::string_view content, std::string_view key);

/// Compares the signature in the text of a manifest. Failures (checkpoint): it has none, or another
/// key's.
base::Status check_signature(std::string_view text, std::string_view source, std::string_view key);

/// The parts that the signature of a step does not vouch for whose blocks have no SHA-256, as
/// earlier versions signed.
std::string not_covered_text(const std::filesystem::path& step_folder);

}  // namespace trireme::checkpoint
