// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "trireme/base/library_version.hpp"

#include <array>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

/// Digests, by OpenSSL.
namespace trireme::base {

using Sha256 = std::array<unsigned char, 32>;

/// SHA-256 (FIPS 180-4).
Sha256 sha256(std::span<const std::byte> bytes);
Sha256 sha256(std::string_view text);
/// HMAC-SHA-256 (RFC 2104).
Sha256 hmac_sha256(std::span<const unsigned char> key, std::string_view text);
/// MD5 (RFC 1321) in Base64: against damage on the way, where a protocol asks for it.
std::string md5_base64(std::string_view text);
/// Lower-case hexadecimal digits.
std::string hexadecimal(std::span<const unsigned char> bytes);
/// In a time that tells nothing about where they differ.
bool equal_secrets(std::string_view a, std::string_view b);

LibraryVersion digest_library();

}  // namespace trireme::base
