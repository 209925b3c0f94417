// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/manifest.hpp"

#include "trireme/base/digest.hpp"
#include "trireme/base/philox.hpp"

#include <catch2/catch.hpp>
#include <sys/resource.h>

#include <functional>

using namespace trireme;
using base::Json;
using checkpoint::Manifest;

namespace {

const std::string digest(64, 'a');

/// A matrix in two files and one behind the other, halves of a vector in a second bucket.
Manifest good_manifest() {
  Manifest manifest;
  manifest.step = 5;
  manifest.tokens = 1234;
  manifest.tool_version = "trireme 0.1.0 \"quoted\"";
  manifest.state = {{"loss", 0.1}, {"layout", "tp2"}};
  manifest.files = {{"shard-00000.h5", (std::uint64_t{2} << 20) + 7, digest},
                    {"shard-00001.h5", 8192, digest}};
  manifest.contents.buckets = {{device::DType::f32, {0, 1, 2}, 16, 1024},
                               {device::DType::bf16, {0, 1, 1}, 5, 4096}};
  manifest.contents.tensors = {{"model/a",
                                device::DType::f32,
                                {4, 6},
                                {{{{0, 0}, {4, 3}}, 0, 0}, {{{0, 3}, {4, 3}}, 0, 14}}},
                               {"model/b", device::DType::bf16, {5}, {{{{0}, {5}}, 1, 0}}}};
  return manifest;
}

/// The same tensors as version 1 wrote them: boxes with files and bytes.
Json good_version_1() {
  return {{"format", "trireme-checkpoint"},
          {"version", 1},
          {"step", 5},
          {"tokens", 1234},
          {"tool_version", "trireme 0.1.0"},
          {"block_bytes", 1 << 20},
          {"state", Json::object()},
          {"files",
           {{{"name", "shard-00000.h5"},
             {"bytes", (2 << 20) + 7},
             {"crc32c", "00000001abcdef0100000003"}},
            {{"name", "shard-00001.h5"}, {"bytes", 4096}, {"crc32c", "00000009"}}}},
          {"tensors",
           {{{"name", "model/a"},
             {"dtype", "f32"},
             {"shape", {4, 6}},
             {"boxes",
              {{{"offset", {0, 0}}, {"length", {4, 3}}, {"file", 0}, {"byte", 1024}},
               {{"offset", {0, 3}}, {"length", {4, 3}}, {"file", 1}, {"byte", 0}}}}},
            {{"name", "model/b"},
             {"dtype", "bf16"},
             {"shape", {5}},
             {"boxes", {{{"offset", {0}}, {"length", {5}}, {"file", 0}, {"byte", 4096}}}}}}}};
}

/// The text that an author of bad intent would write: any content under a digest that matches.
std::string with_digest(std::string content) {
  content.pop_back();  // the last brace
  return content + ",\n\"sha256\":\"" + base::hexadecimal(base::sha256(content)) + "\"}\n";
}

std::string text_of(const std::function<void(Json&)>& change) {
  const auto text = checkpoint::manifest_text(good_manifest());
  auto json = Json::parse(text);
  json.erase("sha256");
  change(json);
  return with_digest(json.dump());
}

std::string failure_in(const std::string& text) {
  const auto parsed = checkpoint::parse_manifest(text, "crafted");
  if (parsed.ok()) return "accepted";
  CHECK(parsed.failure().code == base::ExitCode::checkpoint);
  return parsed.failure().text;
}
std::string failure_of(const std::function<void(Json&)>& change) {
  return failure_in(text_of(change));
}
std::string failure_of_version_1(const std::function<void(Json&)>& change) {
  auto json = good_version_1();
  change(json);
  return failure_in(with_digest(json.dump()));
}

struct Case {
  const char* reason;
  std::function<void(Json&)> change;
};

}  // namespace

TEST_CASE("a manifest may have its members in any order") {
  const auto before = good_manifest();
  const auto text = text_of([](Json& json) {
    // Contents of lists are known once they are read.
    for (const char* key : {"format", "version"}) {
      const auto value = json[key];
      json.erase(key);
      json[key] = value;
    }
  });
  REQUIRE(text.find("\"version\"") > text.find("\"tensors\""));
  const auto parsed = checkpoint::parse_manifest(text, "m");
  REQUIRE(parsed.ok());
  CHECK(checkpoint::manifest_text(*parsed) == checkpoint::manifest_text(before));
}

TEST_CASE("a manifest reads back as it was written") {
  const auto before = good_manifest();
  const auto parsed = checkpoint::parse_manifest(checkpoint::manifest_text(before), "m");
  REQUIRE(parsed.ok());
  CHECK(checkpoint::manifest_text(*parsed) == checkpoint::manifest_text(before));
  CHECK(parsed->tool_version == before.tool_version);
  CHECK(parsed->contents.hash() == before.contents.hash());
  CHECK(parsed->contents.buckets[1].byte == 4096);
  CHECK(parsed->contents.find("model/b")->parts[0].bucket == 1);
  CHECK(parsed->contents.find("model/c") == nullptr);
  CHECK(parsed->contents.payload_bytes() == 4 * 6 * 4 + 5 * 2);
  CHECK(parsed->stored_bytes(parsed->files[0]) == (2 << 20) + 7 + 3 * 4);
  CHECK(failure_of([](Json&) {}) == "accepted");
}

TEST_CASE("crafted manifests are refused, each for its own reason") {
  const auto long_name = std::string(600, 'x');
  const std::vector<Case> cases{
      {"format", [](Json& m) { m["format"] = "other"; }},
      {"version 4", [](Json& m) { m["version"] = 4; }},
      {"version 0", [](Json& m) { m["version"] = 0; }},
      // Version 1 has other members.
      {"'crc32c'", [](Json& m) { m["version"] = 1; }},
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
      {"do not lie inside", [](Json& m) { m["files"][0]["bytes"] = 0; }},
      {"'bytes'", [](Json& m) { m["files"][0]["bytes"] = -5; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["checksums_sha256"] = "abc"; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["checksums_sha256"] = std::string(64, 'g'); }},
      {"'buckets'", [](Json& m) { m["buckets"] = 7; }},
      {"first, stride and count",
       [](Json& m) {
         m["buckets"][0]["files"] = {0, 1};
       }},
      {"of them, but there are 2",
       [](Json& m) {
         m["buckets"][0]["files"] = {0, 1, 3};
       }},
      {"of them, but there are 2",
       [](Json& m) {
         m["buckets"][0]["files"] = {0, 2, 2};
       }},
      {"of them, but there are 2",
       [](Json& m) {
         m["buckets"][0]["files"] = {2, 1, 1};
       }},
      {"of them, but there are 2",
       [](Json& m) {
         m["buckets"][0]["files"] = {0, 1, 0};
       }},
      {"of them, but there are 2",
       [](Json& m) {
         m["buckets"][0]["files"] = {0, 0, 2};
       }},
      {"of them, but there are 2",
       [](Json& m) {
         m["buckets"][0]["files"] = {INT64_MAX, INT64_MAX, INT64_MAX};
       }},
      {"shards of 0 elements", [](Json& m) { m["buckets"][0]["shard_elements"] = 0; }},
      {"shards of", [](Json& m) { m["buckets"][0]["shard_elements"] = INT64_MAX; }},
      {"inside the 24", [](Json& m) { m["buckets"][0]["shard_elements"] = 12; }},
      {"do not lie inside", [](Json& m) { m["buckets"][0]["byte"] = 8192; }},
      {"begins at byte", [](Json& m) { m["buckets"][0]["byte"] = INT64_MAX; }},
      {"at a multiple", [](Json& m) { m["buckets"][0]["byte"] = 2; }},
      {"overlap at byte", [](Json& m) { m["buckets"][1]["byte"] = 1086; }},
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
      // A part is its bucket, its begin, its offset, its length.
      {"2 of 5", [](Json& m) { m["tensors"][1]["parts"][0][3] = 2; }},
      {"inside", [](Json& m) { m["tensors"][1]["parts"][0][2] = 1; }},
      {"inside", [](Json& m) { m["tensors"][1]["parts"][0][2] = INT64_MAX; }},
      {"in each dimension", [](Json& m) { m["tensors"][1]["parts"][0].push_back(1); }},
      {"in each dimension", [](Json& m) { m["tensors"][1]["parts"][0] = Json::array(); }},
      {"'parts' is not a list", [](Json& m) { m["tensors"][1]["parts"][0] = Json::object(); }},
      {"overlap", [](Json& m) { m["tensors"][0]["parts"][1][3] = 2; }},
      {"overlap", [](Json& m) { m["tensors"][0]["parts"].push_back(m["tensors"][0]["parts"][0]); }},
      {"12 of 24", [](Json& m) { m["tensors"][0]["parts"].erase(0); }},
      {"bucket number 2 of 2", [](Json& m) { m["tensors"][1]["parts"][0][0] = 2; }},
      {"lies in bucket 0 of f32", [](Json& m) { m["tensors"][1]["parts"][0][0] = 0; }},
      {"whole number", [](Json& m) { m["tensors"][1]["parts"][0][0] = -1; }},
      {"do not lie inside the 32", [](Json& m) { m["tensors"][0]["parts"][1][1] = 21; }},
      {"do not lie inside", [](Json& m) { m["tensors"][0]["parts"][1][1] = INT64_MAX; }},
      {"overlap at element 11", [](Json& m) { m["tensors"][0]["parts"][1][1] = 11; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "../a"; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "a//b"; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "a\nb"; }},
      {"not allowed", [](Json& m) { m["tensors"][0]["name"] = "%b"; }},
      {"characters", [](Json& m) { m["tensors"][0]["name"] = ""; }},
      {"characters", [&](Json& m) { m["tensors"][0]["name"] = long_name; }},
      {"ascend", [](Json& m) { m["tensors"][0]["name"] = "model/c"; }},
      {"ascend", [](Json& m) { m["tensors"][0]["name"] = "model/b"; }},
      {"begins with", [](Json& m) { m["tensors"][1]["name"] = "model/a/b"; }},
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

TEST_CASE("crafted manifests of version 1 are refused, each for its own reason") {
  CHECK(failure_of_version_1([](Json&) {}) == "accepted");
  const std::vector<Case> cases{
      {"checksums", [](Json& m) { m["files"][0]["bytes"] = INT64_MAX; }},
      {"checksums", [](Json& m) { m["files"][0]["bytes"] = 0; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["crc32c"] = "0000000"; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["crc32c"] = "0000000g"; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["crc32c"] = "-0000001"; }},
      {"hexadecimal", [](Json& m) { m["files"][1]["crc32c"] = ""; }},
      {"2 of 5", [](Json& m) { m["tensors"][1]["boxes"][0]["length"] = {2}; }},
      {"shards of 0 elements",
       [](Json& m) {
         m["tensors"][0]["boxes"][0]["length"] = {INT64_MAX, INT64_MAX};
       }},
      {"shards of 0 elements",
       [](Json& m) {
         m["tensors"][0]["boxes"][0]["length"] = {0, 3};
       }},
      {"12 of 24", [](Json& m) { m["tensors"][0]["boxes"].erase(0); }},
      {"but there are 2", [](Json& m) { m["tensors"][1]["boxes"][0]["file"] = 2; }},
      {"'file'", [](Json& m) { m["tensors"][1]["boxes"][0]["file"] = -1; }},
      {"do not lie inside", [](Json& m) { m["tensors"][0]["boxes"][1]["byte"] = 4096; }},
      {"overlap at byte", [](Json& m) { m["tensors"][1]["boxes"][0]["byte"] = 1026; }},
  };
  for (std::size_t index = 0; index < cases.size(); ++index) {
    INFO("case " << index);
    CHECK_THAT(failure_of_version_1(cases[index].change), Catch::Contains(cases[index].reason));
  }
}

TEST_CASE("a manifest that claims exabytes costs no memory") {
  rusage before{};
  ::getrusage(RUSAGE_SELF, &before);
  const auto huge = std::int64_t{1} << 59;
  CHECK_THAT(failure_of([&](Json& m) {
               m["tensors"][1]["shape"] = {huge};
               m["tensors"][1]["parts"][0][3] = huge;
             }),
             Catch::Contains("do not lie inside"));
  CHECK_THAT(failure_of([&](Json& m) { m["buckets"][1]["shard_elements"] = huge; }),
             Catch::Contains("do not lie inside"));
  // Accepted: what a file of such a length lacks shows when it is opened.
  CHECK(failure_of([&](Json& m) { m["files"][0]["bytes"] = INT64_MAX; }) == "accepted");
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
    // A manifest that was accepted keeps every promise: it can be written and read again.
    CHECK(checkpoint::parse_manifest(checkpoint::manifest_text(*parsed), "again").ok());
  }
  CHECK(refused > 10'000);
}
