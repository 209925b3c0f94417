// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/digest.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"

#include <openssl/crypto.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>

namespace trireme::base {
namespace {

void demand(bool computed, std::string_view what) {
  if (!computed) throw Error(ExitCode::internal, format("OpenSSL cannot compute {}", what));
}

}  // namespace

Sha256 sha256(std::span<const std::byte> bytes) {
  Sha256 digest{};
  demand(EVP_Digest(bytes.data(), bytes.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1,
         "SHA-256");
  return digest;
}

Sha256 sha256(std::string_view text) {
  return sha256(std::as_bytes(std::span(text.data(), text.size())));
}

Sha256 hmac_sha256(std::span<const unsigned char> key, std::string_view text) {
  Sha256 digest{};
  demand(HMAC(EVP_sha256(), key.data(), static_cast<int>(key.size()),
              reinterpret_cast<const unsigned char*>(text.data()), text.size(), digest.data(),
              nullptr) != nullptr,
         "HMAC-SHA-256");
  return digest;
}

std::string md5_base64(std::string_view text) {
  std::array<unsigned char, 16> digest{};
  demand(EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_md5(), nullptr) == 1,
         "MD5");
  // 16 bytes are 24 characters; OpenSSL ends them with a zero.
  std::array<unsigned char, 25> encoded{};
  EVP_EncodeBlock(encoded.data(), digest.data(), static_cast<int>(digest.size()));
  return {encoded.begin(), encoded.end() - 1};
}

std::string hexadecimal(std::span<const unsigned char> bytes) {
  std::string text;
  for (const auto byte : bytes) text += format("{:02x}", byte);
  return text;
}

bool equal_secrets(std::string_view a, std::string_view b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

LibraryVersion digest_library() {
  return {"OpenSSL", OpenSSL_version(OPENSSL_FULL_VERSION_STRING)};
}

}  // namespace trireme::base
