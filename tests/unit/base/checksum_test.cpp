// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/checksum.hpp"

#include <catch2/catch.hpp>

#include <string_view>
#include <vector>

using namespace trireme;

TEST_CASE("checksums are those of the catalogue of CRC algorithms") {
  const auto digits = std::as_bytes(std::span(std::string_view("123456789")));
  // "check" of CRC-32/ISCSI and CRC-32/ISO-HDLC (reveng.sourceforge.io/crc-catalogue).
  CHECK(base::crc32c(digits) == 0xE3069283U);
  CHECK(base::crc32(digits) == 0xCBF43926U);
  CHECK(base::crc32c(digits.subspan(4), base::crc32c(digits.first(4))) == 0xE3069283U);
  CHECK(base::crc32(digits.subspan(4), base::crc32(digits.first(4))) == 0xCBF43926U);
  CHECK(base::crc32c({}) == 0);
  CHECK(base::crc32({}) == 0);
  const std::vector<std::byte> zeros(32);
  CHECK(base::crc32c(zeros) == 0x8A9136AAU);  // RFC 3720, B.4
}
