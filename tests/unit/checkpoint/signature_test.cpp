// SPDX-License-Identifier: Apache-2.0
#include "trireme/checkpoint/signature.hpp"

#include "trireme/base/error.hpp"

#include "unit/checkpoint/one_value.hpp"
#include "unit/checkpoint/small_steps.hpp"

#include <catch2/catch.hpp>
#include <sys/stat.h>

#include <fstream>
#include <iterator>

using namespace trireme;
using namespace trireme::tests;
using checkpoint::VerifyLevel;

namespace {

const std::string key = "a key of more than sixteen bytes";

/// Saves a step of one element, signed.
void save_signed(const std::filesystem::path& folder, std::int64_t step, const std::string& with) {
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Held small("w", {10}, device::DType::f32, {{5 * world.rank()}, {5}});
    auto contents = contents_of({{"w", {10}, device::DType::f32, {{0}, {5}}, 0},
                                 {"w", {10}, device::DType::f32, {{5}, {5}}, 1}});
    checkpoint::SaveRequest request{folder, step, 0, "test", {}, std::move(contents), {small.data}};
    // Only the first rank's counts.
    request.key = world.rank() == 0 ? with : "";
    checkpoint::save(request, world);
  });
}

/// The step that is loaded with the key, or the error.
std::string loaded_with(const std::filesystem::path& folder, const std::string& with) {
  std::string text;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    const Held all("w", {10}, device::DType::f32, layout::whole({10}));
    const auto choose = [&](const checkpoint::Manifest&) { return std::vector{all.wanted()}; };
    checkpoint::LoadOptions options;
    options.access.key = world.rank() == 0 ? with : "";
    std::string found;
    try {
      found = std::to_string(checkpoint::load_newest(folder, choose, world, options)->step);
    } catch (const base::Error& error) {
      found = error.what();
    }
    if (world.rank() == 0) text = found;
  });
  return text;
}

std::string text_of(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

}  // namespace

TEST_CASE("the signature of a manifest has the published value") {
  // RFC 4231, test case 2.
  CHECK(checkpoint::signature_member("what do ya want for nothing?", "Jefe") ==
        ",\n\"hmac_sha256\":\"5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843\"");
}

TEST_CASE("a run with a key loads what is signed with it, and nothing else") {
  const ScratchFolder scratch;
  save_signed(scratch.path(), 1, key);
  save_signed(scratch.path(), 2, "");
  save_signed(scratch.path(), 3, "another key of sixteen bytes");
  CHECK(loaded_with(scratch.path(), key) == "1");
  // Who has no key may load all.
  CHECK(loaded_with(scratch.path(), "") == "3");
  const auto verified = [&](const char* step) {
    const auto report = checkpoint::verify(scratch.path() / step, VerifyLevel::full, 0, key);
    return report.good() ? "good" : report.damages.at(0).text;
  };
  CHECK(verified("step-000000001") == "good");
  CHECK_THAT(verified("step-000000002"), Catch::Contains("not signed"));
  CHECK_THAT(verified("step-000000003"), Catch::Contains("another key"));
  std::filesystem::remove_all(scratch.path() / "step-000000001");
  CHECK_THAT(loaded_with(scratch.path(), key),
             Catch::Contains("not signed") && Catch::Contains("another key"));
}

TEST_CASE("a manifest that was changed and given a new digest keeps no signature") {
  const ScratchFolder scratch;
  save_signed(scratch.path(), 1, key);
  const auto file = scratch.path() / "step-000000001" / "manifest.json";
  const auto text = text_of(file);
  REQUIRE(checkpoint::check_signature(text, "m", key).ok());
  for (std::size_t at = 0; at < text.size(); at += 7) {
    auto changed = text;
    changed[at] = static_cast<char>(changed[at] ^ 1);
    const bool in_digest = at + 79 >= text.size();
    INFO(at);
    CHECK(checkpoint::check_signature(changed, "m", key).ok() == in_digest);
  }
  for (const auto length : {std::size_t{0}, std::size_t{10}, std::size_t{80}, text.size() / 2}) {
    CHECK_FALSE(checkpoint::check_signature(text.substr(0, length), "m", key).ok());
  }
}

namespace {

/// Changes the first value of a step so that the CRC-32C of its block stays what it is: a CRC does
/// not see a multiple of its polynomial.
void forge(const std::filesystem::path& step) {
  constexpr std::uint64_t polynomial = 1 | (std::uint64_t{0x82F63B78} << 1);
  const auto manifest = base::value_or_throw(checkpoint::read_manifest(step));
  const auto at = static_cast<std::streamoff>(manifest.contents.buckets[0].byte);
  std::fstream file(step / manifest.files[0].name, std::ios::in | std::ios::out | std::ios::binary);
  for (int byte = 0; byte < 5; ++byte) {
    file.seekg(at + byte);
    const auto value = file.get();
    file.seekp(at + byte);
    file.put(static_cast<char>(value ^ static_cast<int>((polynomial >> (8 * byte)) & 0xFF)));
  }
}

}  // namespace

TEST_CASE("values that were changed under an unchanged checksum are no signed ones") {
  const ScratchFolder scratch;
  const auto step = scratch.path() / "step-000000001";
  save_signed(scratch.path(), 1, "");
  const auto before = text_of(step / "shard-00000.h5");
  forge(step);
  CHECK(text_of(step / "shard-00000.h5") != before);
  // Checksums are against damage, and do not tell.
  CHECK(checkpoint::verify(step, VerifyLevel::full).good());
  std::filesystem::remove_all(step);
  save_signed(scratch.path(), 1, key);
  CHECK(checkpoint::verify(step, VerifyLevel::full, 0, key).good());
  CHECK(checkpoint::verify(step, VerifyLevel::full, 0, key).not_covered.empty());
  forge(step);
  CHECK_THAT(checkpoint::verify(step, VerifyLevel::full, 0, key).damages.at(0).text,
             Catch::Contains("shard-00000.h5' is damaged in bytes") &&
                 Catch::Contains("checksum or SHA-256 does not match"));
  CHECK_THAT(loaded_with(scratch.path(), key), Catch::Contains("SHA-256 does not match"));
  CHECK_FALSE(checkpoint::verify(step, VerifyLevel::full).good());
}

TEST_CASE("the SHA-256 of blocks cannot be changed with the values") {
  const ScratchFolder scratch;
  const auto step = scratch.path() / "step-000000001";
  save_signed(scratch.path(), 1, key);
  const auto manifest = base::value_or_throw(checkpoint::read_manifest(step));
  const auto path = step / manifest.files[0].name;
  CHECK(std::filesystem::file_size(path) == manifest.stored_bytes(manifest.files[0]));
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(-1, std::ios::end);
  file.put('x');
  file.close();
  CHECK_THAT(checkpoint::verify(step, VerifyLevel::full, 0, key).damages.at(0).text,
             Catch::Contains("nothing in it can be trusted"));
}

TEST_CASE("a step whose signature covers its manifest alone is loaded, and told of") {
  const ScratchFolder scratch;
  const auto step = scratch.path() / "step-000000001";
  save_signed(scratch.path(), 1, "");
  const auto manifest = base::value_or_throw(checkpoint::read_manifest(step));
  std::ofstream(step / "manifest.json") << checkpoint::manifest_text(manifest, key);
  const auto report = checkpoint::verify(step, VerifyLevel::full, 0, key);
  CHECK(report.good());
  CHECK_THAT(report.not_covered, Catch::Contains("covers its manifest and not its values"));
  CHECK(loaded_with(scratch.path(), key) == "1");
}

TEST_CASE("a key file is of some bytes that nobody else may read") {
  const ScratchFolder scratch;
  const auto file = scratch.path() / "key";
  std::ofstream(file) << key << "\n";
  ::chmod(file.c_str(), 0640);
  const auto open = checkpoint::read_key_file(file);
  REQUIRE_FALSE(open.ok());
  CHECK_THAT(open.failure().text, Catch::Contains("chmod 600"));
  ::chmod(file.c_str(), 0600);
  CHECK(checkpoint::read_key_file(file).value() == key);
  for (const auto length : {std::size_t{0}, std::size_t{15}, std::size_t{4097}}) {
    std::ofstream(file, std::ios::trunc) << std::string(length, 'k');
    CHECK_FALSE(checkpoint::read_key_file(file).ok());
  }
  CHECK_FALSE(checkpoint::read_key_file(scratch.path()).ok());
  CHECK_FALSE(checkpoint::read_key_file(scratch.path() / "none").ok());
}
