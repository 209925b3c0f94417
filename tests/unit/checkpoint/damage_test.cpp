// SPDX-License-Identifier: Apache-2.0
#include "trireme/base/error.hpp"
#include "trireme/base/philox.hpp"

#include "unit/checkpoint/one_value.hpp"
#include "unit/checkpoint/storage/faulty_file_system.hpp"
#include "unit/checkpoint/toy_model.hpp"

#include <catch2/catch.hpp>

#include <fstream>
#include <iterator>

using namespace trireme;
using namespace trireme::tests;
using checkpoint::VerifyLevel;

namespace {

std::filesystem::path save_two_ranks(const std::filesystem::path& folder, std::int64_t step) {
  std::filesystem::path saved;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    ToyState state({1, 1, 2, 0}, world.rank());
    state.fill();
    const auto report = checkpoint::save(state.request(folder, step, 5), world);
    if (world.rank() == 0) saved = report.folder;
  });
  return saved;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void flip(const std::filesystem::path& file, std::uint64_t byte) {
  std::fstream stream(file, std::ios::binary | std::ios::in | std::ios::out);
  stream.seekg(static_cast<std::streamoff>(byte));
  const int before = stream.get();
  stream.seekp(static_cast<std::streamoff>(byte));
  stream.put(static_cast<char>(before ^ 0x10));
}

/// Error that a full load into the toy model throws, or nothing.
std::string load_error(const std::filesystem::path& folder) {
  std::string text;
  run_ranks(2, [&](comm::ProcessGroup& world) {
    ToyState state({1, 2, 1, 0}, world.rank());
    try {
      checkpoint::load(folder, state.load_items(), world);
    } catch (const base::Error& error) {
      CHECK(error.code() == base::ExitCode::checkpoint);
      if (world.rank() == 0) text = error.what();
    }
  });
  return text;
}

/// The tensor that has this byte of a file; none where there is only structure.
std::string tensor_at(const checkpoint::Manifest& manifest, std::size_t file, std::uint64_t byte) {
  const auto& contents = manifest.contents;
  for (const auto& tensor : contents.tensors) {
    for (const auto& part : tensor.parts) {
      const auto position = contents.buckets[part.bucket].files.position_of(file);
      if (!position) continue;
      const auto slice = contents.slice_at(part, *position);
      const auto end = slice.byte + static_cast<std::uint64_t>(slice.end - slice.begin) *
                                        device::size_of(tensor.dtype);
      if (slice.begin < slice.end && slice.byte <= byte && byte < end) return tensor.name;
    }
  }
  return {};
}

}  // namespace

TEST_CASE("a flipped byte anywhere in a file is found, and file, tensor and byte range named") {
  const ScratchFolder scratch;
  const auto folder = save_two_ranks(scratch.path(), 1);
  const auto manifest = *checkpoint::read_manifest(folder);
  for (std::size_t index = 0; index < manifest.files.size(); ++index) {
    const auto& file = manifest.files[index];
    const auto all_bytes = std::filesystem::file_size(folder / file.name);
    REQUIRE(all_bytes == manifest.stored_bytes(file));
    // Among them the first and the last of the blocks, and of their checksums.
    for (std::uint64_t sample = 0; sample < 12; ++sample) {
      const auto random = base::philox(7, file.bytes, sample);
      const auto byte = sample == 0   ? 0
                        : sample == 1 ? file.bytes - 1
                        : sample == 2 ? file.bytes
                        : sample == 3 ? all_bytes - 1
                                      : (std::uint64_t{random[0]} << 32 | random[1]) % file.bytes;
      flip(folder / file.name, byte);
      const auto report = checkpoint::verify(folder, VerifyLevel::full);
      INFO(file.name << " byte " << byte);
      REQUIRE(report.damages.size() == 1);
      const auto& damage = report.damages[0];
      CHECK(damage.file == file.name);
      CHECK((damage.begin <= byte && byte < damage.end));
      CHECK(damage.end - damage.begin <= manifest.block_bytes);
      const auto tensor = tensor_at(manifest, index, byte);
      if (!tensor.empty()) {
        CHECK(std::find(damage.tensors.begin(), damage.tensors.end(), tensor) !=
              damage.tensors.end());
        const auto text = load_error(folder);
        CHECK_THAT(text, Catch::Contains(file.name) && Catch::Contains("checksum") &&
                             Catch::Contains(std::to_string(damage.begin)) &&
                             Catch::Contains("use another step"));
      }
      flip(folder / file.name, byte);
    }
  }
  CHECK(checkpoint::verify(folder, VerifyLevel::full).good());
}

TEST_CASE("a flipped bit anywhere in the manifest is found") {
  const ScratchFolder scratch;
  const auto text = contents(save_two_ranks(scratch.path(), 1) / "manifest.json");
  REQUIRE(checkpoint::parse_manifest(text, "m").ok());
  std::size_t found = 0;
  for (std::size_t at = 0; at < text.size(); ++at) {
    auto damaged = text;
    damaged[at] = static_cast<char>(damaged[at] ^ (1 << (at % 8)));
    const auto parsed = checkpoint::parse_manifest(damaged, "m");
    if (!parsed.ok() && parsed.failure().text.find("SHA-256") != std::string::npos) ++found;
  }
  CHECK(found == text.size());
}

TEST_CASE("cut, missing, longer and linked files are found by the quick look already") {
  const ScratchFolder scratch;
  const auto folder = save_two_ranks(scratch.path(), 1);
  const std::string name =
      GENERATE("shard-00000.h5", "shard-00001.h5", "master.h5", "manifest.json");
  const auto file = folder / name;
  const auto size = std::filesystem::file_size(file);
  const auto expect_bad = [&] {
    const auto report = checkpoint::verify(folder, VerifyLevel::quick);
    REQUIRE(report.damages.size() == 1);
    CHECK(report.damages[0].file == name);
    if (name != "master.h5") CHECK_FALSE(load_error(folder).empty());
  };
  for (const auto length : {std::uintmax_t{0}, std::uintmax_t{1}, size / 2, size - 1, size + 1}) {
    const auto copy = contents(file);
    std::filesystem::resize_file(file, length);
    INFO(name << " at " << length << " bytes");
    expect_bad();
    std::ofstream(file, std::ios::binary) << copy;
  }
  const auto elsewhere = scratch.path() / "elsewhere";
  std::filesystem::rename(file, elsewhere);
  expect_bad();
  std::filesystem::create_symlink(elsewhere, file);
  expect_bad();
  std::filesystem::remove(file);
  std::filesystem::create_directory(file);
  expect_bad();
}

TEST_CASE("files swapped between two steps are found in both") {
  const std::string name = GENERATE("shard-00000.h5", "shard-00001.h5");
  const ScratchFolder scratch;
  auto& system = checkpoint::FileSystem::system();
  for (const int step : {1, 2}) save_value(scratch.path(), step, static_cast<float>(step), system);
  const auto first = scratch.path() / "step-000000001";
  const auto second = scratch.path() / "step-000000002";
  REQUIRE(system.exchange(first / name, second / name) == 0);
  for (const auto& folder : {first, second}) {
    const auto report = checkpoint::verify(folder, VerifyLevel::full);
    REQUIRE(report.damages.size() == 1);
    CHECK(report.damages[0].file == name);
    CHECK_THAT(report.damages[0].text, Catch::Contains("a file of another step"));
  }
  CHECK_THROWS_WITH(load_value(scratch.path()),
                    Catch::Contains("step-000000001") && Catch::Contains("step-000000002"));
}

TEST_CASE("a manifest in the folder of another step is refused, and so is a folder renamed") {
  const ScratchFolder scratch;
  auto& system = checkpoint::FileSystem::system();
  for (const int step : {1, 2}) save_value(scratch.path(), step, static_cast<float>(step), system);
  const auto second = scratch.path() / "step-000000002";
  const auto expect_refused = [&](const std::filesystem::path& folder) {
    const auto report = checkpoint::verify(folder, VerifyLevel::quick);
    REQUIRE(report.damages.size() == 1);
    CHECK_THAT(report.damages[0].text, Catch::Contains("its folder is named as step"));
    CHECK(load_value(scratch.path()).value == 1.0F);
  };
  const auto renamed = scratch.path() / "step-000000003";
  std::filesystem::rename(second, renamed);
  expect_refused(renamed);
  std::filesystem::rename(renamed, second);
  CHECK(load_value(scratch.path()).value == 2.0F);
  std::filesystem::copy_file(scratch.path() / "step-000000001" / "manifest.json",
                             second / "manifest.json",
                             std::filesystem::copy_options::overwrite_existing);
  expect_refused(second);
}

TEST_CASE("a run with a damaged newest step resumes from the step before it") {
  const ScratchFolder scratch;
  save_two_ranks(scratch.path(), 1);
  const auto newest = save_two_ranks(scratch.path(), 2);
  flip(newest / "shard-00001.h5", std::filesystem::file_size(newest / "shard-00001.h5") - 1);
  CHECK(checkpoint::newest_verified(scratch.path())->step == 1);
  run_ranks(3, [&](comm::ProcessGroup& world) {
    ToyState state({1, 3, 1, 1}, world.rank());
    const auto choose = [&](const checkpoint::Manifest&) { return state.load_items(); };
    const auto report = checkpoint::load_newest(scratch.path(), choose, world);
    CHECK((report && report->step == 1));
    CHECK(state.wrong_elements() == 0);
  });
}

TEST_CASE("a read that the storage refuses for a while is tried again, and is no damage") {
  const ScratchFolder scratch;
  save_two_ranks(scratch.path(), 1);
  save_two_ranks(scratch.path(), 2);
  const std::string call = GENERATE("open", "read");
  const int number = GENERATE(EIO, ESTALE, EMFILE);
  FaultyFileSystem files;
  const auto load = [&](comm::ProcessGroup& world, std::chrono::milliseconds patience) {
    ToyState state({1, 2, 1, 1}, world.rank());
    const auto choose = [&](const checkpoint::Manifest&) { return state.load_items(); };
    const auto report = checkpoint::load_newest(
        scratch.path(), choose, world, {.access = {.files = &files, .patience = patience}});
    CHECK(state.wrong_elements() == 0);
    return report ? report->step : -1;
  };
  files.refuse(call, 3, number);
  run_ranks(2,
            [&](comm::ProcessGroup& world) { CHECK(load(world, std::chrono::seconds{60}) == 2); });
  // For ever: falling back to step 1 would lose work, so that nothing is loaded.
  files.refuse(call, 1 << 30, number);
  run_ranks(2, [&](comm::ProcessGroup& world) {
    CHECK_THROWS_WITH(load(world, std::chrono::milliseconds{30}),
                      Catch::Contains("step-000000002") &&
                          Catch::Contains("start again when the storage answers"));
  });
}

TEST_CASE("when no step verifies the run ends with exit code 6 and every reason") {
  const ScratchFolder scratch;
  for (const std::int64_t step : {1, 2})
    flip(save_two_ranks(scratch.path(), step) / "manifest.json", 40);
  const auto found = checkpoint::newest_verified(scratch.path());
  REQUIRE_FALSE(found.ok());
  CHECK(found.failure().code == base::ExitCode::checkpoint);
  const auto choose = [](const checkpoint::Manifest&) {
    return std::vector<checkpoint::LoadItem>{};
  };
  run_ranks(1, [&](comm::ProcessGroup& world) {
    CHECK_THROWS_WITH(checkpoint::load_newest(scratch.path(), choose, world),
                      Catch::Contains("step-000000001") && Catch::Contains("step-000000002"));
    CHECK_FALSE(checkpoint::load_newest(scratch.path() / "none", choose, world).has_value());
  });
}

TEST_CASE("loading names the tensor that is missing, misshapen or of another kind") {
  const ScratchFolder scratch;
  const auto folder = save_two_ranks(scratch.path(), 1);
  const auto error_of = [&](const std::string& name, layout::Shape shape, device::DType dtype) {
    std::string text;
    run_ranks(1, [&](comm::ProcessGroup& world) {
      const Held held(name, shape, dtype, layout::whole(shape));
      try {
        checkpoint::load(folder, std::vector{held.wanted()}, world);
      } catch (const base::Error& error) {
        text = error.what();
      }
    });
    return text;
  };
  CHECK_THAT(error_of("model/layers.0.nrm", {1500}, device::DType::f32),
             Catch::Contains("did you mean 'model/layers.0.norm'"));
  CHECK_THAT(error_of("model/layers.0.norm", {1501}, device::DType::f32),
             Catch::Contains("[1500]") && Catch::Contains("[1501]"));
  CHECK_THAT(error_of("model/layers.0.norm", {1500}, device::DType::i32),
             Catch::Contains("bf16") && Catch::Contains("i32"));
}
