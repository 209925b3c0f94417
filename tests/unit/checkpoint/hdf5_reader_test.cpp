// SPDX-License-Identifier: Apache-2.0
// Files are read back by a reader that is not ours: h5dump of the package hdf5-tools.
#include "trireme/base/format.hpp"
#include "trireme/checkpoint/manifest.hpp"

#include "unit/checkpoint/toy_model.hpp"

#include <catch2/catch.hpp>

#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>

using namespace trireme;
using namespace trireme::tests;

namespace {

std::string output_of(const std::string& command) {
  std::string text;
  FILE* pipe = ::popen((command + " 2>&1").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::array<char, 4096> buffer{};
  for (std::size_t count = 0; (count = std::fread(buffer.data(), 1, buffer.size(), pipe)) > 0;) {
    text.append(buffer.data(), count);
  }
  INFO(command << "\n" << text);
  REQUIRE(::pclose(pipe) == 0);
  return text;
}

/// The elements of a dataset as h5dump writes them, in the file's own type.
std::string elements_by_h5dump(const std::filesystem::path& file, const std::string& dataset,
                               const std::filesystem::path& scratch) {
  const auto out = scratch / "elements.bin";
  output_of(
      base::format("h5dump -d '{}' -b FILE -o '{}' '{}'", dataset, out.string(), file.string()));
  std::ifstream stream(out, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

/// The numbers after "DATA {" of h5dump's text, without its white space.
std::string data_text(const std::string& dump) {
  const auto at = dump.find("DATA {");
  REQUIRE(at != std::string::npos);
  auto text = dump.substr(at + 6, dump.find('}', at) - at - 6);
  std::erase_if(text, [](char letter) { return letter == ' ' || letter == '\n'; });
  return text;
}

template <typename Number>
std::string six_numbers(const std::vector<Number>& numbers) {
  std::string text;
  for (std::size_t index = 0; index < 6; ++index) {
    text += base::format("{}{:.6g}", index == 0 ? "" : ",", device::to_float(numbers[index]));
  }
  return text;
}

}  // namespace

TEST_CASE("h5dump reads every tensor at its global shape from master.h5") {
  const ScratchFolder scratch;
  const Arrangement arrangement{2, 1, 2, 0};
  std::filesystem::path folder;
  run_ranks(arrangement.ranks(), [&](comm::ProcessGroup& world) {
    ToyState state(arrangement, world.rank());
    state.fill();
    const auto report = checkpoint::save(state.request(scratch.path(), 1), world);
    if (world.rank() == 0) folder = report.folder;
  });
  for (const std::string name : {"model/layers.0.out", "master/layers.0.q", "adam_m/layers.3.conv",
                                 "model/layers.2.norm", "master/embed"}) {
    const auto manifest = checkpoint::read_manifest(folder);
    REQUIRE(manifest.ok());
    const auto* tensor = manifest->contents.find(name);
    REQUIRE(tensor != nullptr);
    Held expected(name, tensor->shape, tensor->dtype, layout::whole(tensor->shape));
    const auto bytes = elements_by_h5dump(folder / "master.h5", "/" + name, scratch.path());
    REQUIRE(bytes.size() == expected.memory.size());
    std::memcpy(expected.memory.data(), bytes.data(), bytes.size());
    INFO(name);
    CHECK(expected.wrong_elements() == 0);
  }
}

TEST_CASE("h5dump prints bf16 and fp32 numbers right, from a shard and from master.h5") {
  const ScratchFolder scratch;
  const std::vector<float> numbers{1.5F, -2.0F, 0.15625F, 3.0e38F, 1e-38F, -0.0F};
  std::vector<float> singles(64 * 512, 0.25F);
  std::vector<device::Bf16> halves(64 * 512, device::to_bf16(-0.75F));
  for (std::size_t index = 0; index < numbers.size(); ++index) {
    singles[index] = numbers[index];
    halves[index] = device::to_bf16(numbers[index]);
  }
  run_ranks(1, [&](comm::ProcessGroup& world) {
    const layout::Shape shape{64, 512};
    const device::Tensor single(singles.data(), device::DType::f32, {64, 512});
    const device::Tensor half(halves.data(), device::DType::bf16, {64, 512});
    const layout::Shape few{6};
    const device::Tensor small(halves.data(), device::DType::bf16, {6});
    const auto contents = contents_of({{"f", shape, device::DType::f32, layout::whole(shape), 0},
                                       {"h", shape, device::DType::bf16, layout::whole(shape), 0},
                                       {"s", few, device::DType::bf16, layout::whole(few), 0}});
    checkpoint::save({scratch.path(), 1, 0, "test", {}, contents, {single, half, small}}, world);
  });
  const auto folder = scratch.path() / "step-000000001";
  const auto first_six = [&](const std::string& file, const std::string& dataset, bool flat) {
    return data_text(
        output_of(base::format("h5dump -y -w 0 -m %.6g -d '{}' -s {} -c {} '{}'", dataset,
                               flat ? "0" : "0,0", flat ? "6" : "1,6", (folder / file).string())));
  };
  const auto exact = six_numbers(singles);
  const auto rounded = six_numbers(halves);
  CHECK(exact == "1.5,-2,0.15625,3e+38,1e-38,-0");
  CHECK(first_six("master.h5", "/f", false) == exact);
  CHECK(first_six("shard-00000.h5", "/f32", true) == exact);
  CHECK(first_six("master.h5", "/h", false) == rounded);
  CHECK(first_six("master.h5", "/s", true) == rounded);
  // One dataset for all tensors of a type: h, then s.
  CHECK(first_six("shard-00000.h5", "/bf16", true) == rounded);
  const auto table =
      output_of(base::format("h5dump -d /bf16_table '{}'", (folder / "shard-00000.h5").string()));
  CHECK_THAT(table,
             Catch::Contains("\"h\"") && Catch::Contains("\"s\"") && Catch::Contains("32768"));
  const auto header =
      output_of(base::format("h5dump -H -p '{}'", (folder / "shard-00000.h5").string()));
  CHECK_THAT(header, Catch::Contains("16-bit little-endian floating-point"));
  CHECK_THAT(header, Catch::Contains("CONTIGUOUS"));
}
