// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/manifest.hpp"

#include "trireme/base/philox.hpp"

#include "checkpoint/checksum.hpp"

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include <functional>

using namespace trireme;
using base::Json;
using checkpoint::Manifest;

namespace {

Manifest good_manifest() {
  Manifest manifest;
  manifest.step = 5;
  manifest.tokens = 1234;
  manifest.tool_version = "trireme 0.1.0 \"quoted\"";
  manifest.state = {{"loss", 0.1}, {"layout", "tp2"}};
  manifest.files = {{"shard-00000.h5", (std::uint64_t{2} << 20) + 7, {1, 0xABCDEF01, 3}},
                    {"shard-00001.h5", 4096, {9}}};
  manifest.tensors = {{"model/a",
                       device::DType::f32,
                       {4, 6},
                       {{{{0, 0}, {4, 3}}, 0, 1024}, {{{0, 3}, {4, 3}}, 1, 0}}},
                      {"model/b", device::DType::bf16, {5}, {{{{0}, {5}}, 0, 4096}}}};
  return manifest;
}

/// The text that an author of bad intent would write: any content under a digest that matches.
std::string with_digest(std::string content) {
  content.pop_back();  // the last brace
  const auto digest = checkpoint::sha256_hex(content);
  return content + ",\n\"sha256\":\"" + digest + "\"}\n";
}

std::string text_of(const std::function<void(Json&)>& change) {
  const auto text = checkpoint::manifest_text(good_manifest());
  auto json = Json::parse(text);
  json.erase("sha256");
  change(json);
  return with_digest(json.dump());
}

std::string failure_of(const std::function<void(Json&)>& change) {
  const auto parsed = checkpoint::parse_manifest(text_of(change), "crafted");
  if (parsed.ok()) return "accepted";
  CHECK(parsed.failure().code == base::ExitCode::checkpoint);
  return parsed.failure().text;
}

}  // namespace

TEST_CASE("checksums give the published values") {
  const std::string digits = "123456789";
  const auto bytes = std::as_bytes(std::span(digits.data(), digits.size()));
  // RFC 3720 names the polynomial; 0xE3069283 is its check value in the catalogues of CRCs.
  CHECK(checkpoint::crc32c(bytes) == 0xE3069283U);
  CHECK(checkpoint::crc32c(bytes.subspan(4), checkpoint::crc32c(bytes.first(4))) == 0xE3069283U);
  const std::vector<std::byte> zeros(32);
  CHECK(checkpoint::crc32c(zeros) == 0x8A9136AAU);  // RFC 3720, B.4
  // FIPS 180-4's example "abc".
  CHECK(checkpoint::sha256_hex("abc") ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("a manifest reads back as it was written") {
  const auto before = good_manifest();
  const auto parsed = checkpoint::parse_manifest(checkpoint::manifest_text(before), "m");
  REQUIRE(parsed.ok());
  CHECK(checkpoint::manifest_text(*parsed) == checkpoint::manifest_text(before));
  CHECK(parsed->tool_version == before.tool_version);
  CHECK(parsed->files[0].crc32c == before.files[0].crc32c);
  CHECK(parsed->find("model/b")->boxes[0].byte == 4096);
  CHECK(parsed->find("model/c") == nullptr);
  CHECK(parsed->payload_bytes() == 4 * 6 * 4 + 5 * 2);
  CHECK(failure_of([](Json&) {}) == "accepted");
}

TEST_CASE("crafted manifests are refused, each for its own reason") {
  struct Case {
    const char* reason;
    std::function<void(Json&)> change;
  };
  const auto long_name = std::string(600, 'x');
  const std::vector<Case> cases{
      {"format", [](Json& m) { m["format"] = "other"; }},
      {"version 2", [](Json& m) { m["version"] = 2; }},
      {"'step'", [](Json& m) { m["step"] = -1; }},
      {"'step'", [](Json& m) { m["step"] = 1.5; }},
      {"'tokens'", [](Json& m) { m["tokens"] = UINT64_MAX; }},
      {"'state'", [](Json& m) { m.erase("state"); }},
      {"block_bytes", [](Json& m) { m["block_bytes"] = 0; }},
      {"block_bytes", [](Json& m) { m["block_bytes"] = 1; }},
      {"block_bytes", [](Json& m) { m["block_bytes"] = INT64_MAX; }},
      {"'files'", [](Json& m) { m["files"] = 7; }},
      {"file's name", [](Json& m) { m["files"][0]["name"] = "../shard-00000.h5"; }},
      {"file's name", [](Json& m) { m["files"][0]["name"] = "/etc/passwd"; }},
      {"file's name", [](Json& m) { m["files"][0]["name"] = "shard-0000/../x.h5"; }},
      {"file's name", [](Json& m) { m["files"][0]["name"] = "manifest.json"; }},
      {"named twice", [](Json& m) { m["files"][1] = m["files"][0]; }},
      {"checksums", [](Json& m) { m["files"][0]["bytes"] = INT64_MAX; }},
      {"checksums", [](Json& m) { m["files"][0]["bytes"] = 0; }},
      {"'bytes'", [](Json& m) { m["files"][0]["bytes"] = -5; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["crc32c"] = "0000000"; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["crc32c"] = "0000000g"; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["crc32c"] = "-0000001"; }},
      {"'dtype'", [](Json& m) { m["tensors"][0]["dtype"] = "f64"; }},
      {"'shape'", [](Json& m) { m["tensors"][0]["shape"] = Json::array(); }},
      {"'shape'",
       [](Json& m) {
         m["tensors"][0]["shape"] = {1, 1, 1, 4, 6};
       }},
      {"shape", [](Json& m) { m["tensors"][1]["shape"] = {0}; }},
      {"'shape'", [](Json& m) { m["tensors"][1]["shape"] = {-5}; }},
      {"shape", [](Json& m) { m["tensors"][1]["shape"] = {std::int64_t{1} << 62}; }},
      {"shape",
       [](Json& m) {
         m["tensors"][0]["shape"] = {std::int64_t{1} << 31, std::int64_t{1} << 31};
       }},
      {"2 of 5", [](Json& m) { m["tensors"][1]["boxes"][0]["length"] = {2}; }},
      {"inside", [](Json& m) { m["tensors"][1]["boxes"][0]["offset"] = {1}; }},
      {"inside", [](Json& m) { m["tensors"][1]["boxes"][0]["offset"] = {INT64_MAX}; }},
      {"inside",
       [](Json& m) {
         m["tensors"][1]["boxes"][0]["length"] = {5, 1};
       }},
      {"overlap",
       [](Json& m) {
         m["tensors"][0]["boxes"][1]["offset"] = {0, 2};
       }},
      {"overlap", [](Json& m) { m["tensors"][0]["boxes"].push_back(m["tensors"][0]["boxes"][0]); }},
      {"12 of 24", [](Json& m) { m["tensors"][0]["boxes"].erase(0); }},
      {"file number 2", [](Json& m) { m["tensors"][1]["boxes"][0]["file"] = 2; }},
      {"'file'", [](Json& m) { m["tensors"][1]["boxes"][0]["file"] = -1; }},
      {"do not lie inside", [](Json& m) { m["tensors"][0]["boxes"][1]["byte"] = 4096; }},
      {"do not lie inside", [](Json& m) { m["tensors"][0]["boxes"][1]["byte"] = INT64_MAX; }},
      {"at a multiple", [](Json& m) { m["tensors"][0]["boxes"][1]["byte"] = 2; }},
      {"overlap at byte", [](Json& m) { m["tensors"][1]["boxes"][0]["byte"] = 1026; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "../a"; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "a//b"; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "a\nb"; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "%b"; }},
      {"characters", [](Json& m) { m["tensors"][0]["name"] = ""; }},
      {"characters", [&](Json& m) { m["tensors"][0]["name"] = long_name; }},
      {"ascend", [](Json& m) { m["tensors"][0]["name"] = "model/c"; }},
      {"ascend", [](Json& m) { m["tensors"][0]["name"] = "model/b"; }},
  };
  for (std::size_t index = 0; index < cases.size(); ++index) {
    INFO("case " << index);
    CHECK_THAT(failure_of(cases[index].change), Catch::Contains(cases[index].reason));
  }
  CHECK_FALSE(checkpoint::parse_manifest(with_digest("[1]"), "m").ok());
  CHECK_FALSE(checkpoint::parse_manifest(with_digest("{\"format\":"), "m").ok());
  CHECK_THAT(checkpoint::parse_manifest(with_digest(std::string(100'000, '[')), "m").failure().text,
             Catch::Contains("deep"));
  for (const std::string text : {"", "{}", "\"}\n"}) {
    CHECK_FALSE(checkpoint::parse_manifest(text, "m").ok());
  }
}

TEST_CASE("a manifest that claims exabytes costs no memory") {
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto huge = std::int64_t{1} << 59;
  CHECK_THAT(failure_of([&](Json& m) {
               m["tensors"][1]["shape"] = {huge};
               m["tensors"][1]["boxes"][0]["length"] = {huge};
             }),
             Catch::Contains("do not lie inside"));
  CHECK_THAT(failure_of([&](Json& m) { m["files"][0]["bytes"] = INT64_MAX; }),
             Catch::Contains("checksums"));
  rusage after{};
  ::getrusage(RUSAGE_SELF, &after);
  CHECK(after.ru_maxrss - before.ru_maxrss < 16 * 1024);
}

TEST_CASE("random changes under a matching digest are refused or harmless") {
  const auto text = checkpoint::manifest_text(good_manifest());
  const auto content = text.substr(0, text.find(",\n\"sha256\"")) + "}";
  const std::string letters = "0123456789-.{}[]\",:eatrue ";
  int refused = 0;
  for (std::uint64_t round = 0; round < 20'000; ++round) {
    auto changed = content;
    const auto random = base::philox(3, 0, round);
    for (std::size_t edit = 0; edit <= random[0] % 3; ++edit) {
      changed[random[edit + 1] % (changed.size() - 1)] =
          letters[(random[edit + 1] >> 16) % letters.size()];
    }
    const auto parsed = checkpoint::parse_manifest(with_digest(changed), "fuzzed");
    if (!parsed.ok()) {
      ++refused;
      continue;
    }
    // What was accepted keeps every promise: it can be written and read again.
    CHECK(checkpoint::parse_manifest(checkpoint::manifest_text(*parsed), "again").ok());
  }
  CHECK(refused > 10'000);
}
