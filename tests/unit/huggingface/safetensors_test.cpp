// SPDX-License-Identifier: Apache-2.0
#include "trireme/huggingface/safetensors.hpp"

#include "trireme/base/error.hpp"
#include "trireme/base/json.hpp"
#include "trireme/base/json_text.hpp"
#include "trireme/base/philox.hpp"

#include "huggingface/half.hpp"
#include "unit/checkpoint/support.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <fstream>
#include <iterator>

using namespace trireme;
using namespace trireme::tests;
using huggingface::SafetensorsFolder;
using huggingface::SafetensorsOutput;
using huggingface::SafetensorsType;
using Orientation = SafetensorsFolder::Orientation;

namespace {

const std::filesystem::path golden =
    std::filesystem::path(TRIREME_SOURCE_DIR) / "tests/golden/safetensors";

/// As scripts/golden-safetensors computes it.
float value(const std::string& name, std::int64_t index) {
  std::int64_t sum = 0;
  for (const char letter : name) sum += static_cast<unsigned char>(letter);
  return static_cast<float>((index * 37 + sum) % 251 - 120) / 8.0F;
}

SafetensorsOutput output(const std::string& name, device::DType dtype, layout::Shape shape) {
  return {name, dtype, std::move(shape),
          [name](std::int64_t begin, std::int64_t end, const device::Tensor& part) {
            REQUIRE(part.element_count() == end - begin);
            for (auto index = begin; index < end; ++index) {
              if (part.dtype() == device::DType::f32) {
                part.f32()[index - begin] = value(name, index);
              } else {
                part.bf16()[index - begin] = device::to_bf16(value(name, index));
              }
            }
          }};
}

std::vector<SafetensorsOutput> small_model() {
  std::vector<SafetensorsOutput> tensors;
  for (int layer = 0; layer < 6; ++layer) {
    const auto name = "layers." + std::to_string(layer);
    tensors.push_back(output(name + ".weight", device::DType::bf16, {150 + layer, 211}));
    tensors.push_back(output(name + ".norm", device::DType::f32, {211}));
  }
  return tensors;
}

std::string contents(const std::filesystem::path& file) {
  std::ifstream stream(file, std::ios::binary);
  return {std::istreambuf_iterator<char>(stream), {}};
}

void check_whole(const SafetensorsFolder& folder, const std::string& name) {
  const auto* entry = folder.find(name);
  REQUIRE(entry != nullptr);
  const auto count = layout::element_count(entry->shape);
  std::vector<float> numbers(static_cast<std::size_t>(count) + 1, -999.0F);
  const device::Tensor to(numbers.data(), device::DType::f32, {count});
  REQUIRE(folder.read_box(name, layout::whole(entry->shape), to).ok());
  std::int64_t wrong = 0;
  for (std::int64_t index = 0; index < count; ++index) {
    if (numbers[static_cast<std::size_t>(index)] != value(name, index)) ++wrong;
  }
  INFO(name);
  CHECK(wrong == 0);
  CHECK(numbers.back() == -999.0F);
}

/// A file of this header and so many data bytes; what opening it says.
std::string failure_of(const std::string& header, std::size_t data_bytes,
                       std::optional<std::uint64_t> claimed = {}) {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "model.safetensors";
  const std::uint64_t size = claimed.value_or(header.size());
  std::ofstream(path, std::ios::binary) << std::string(reinterpret_cast<const char*>(&size), 8)
                                        << header << std::string(data_bytes, 'x');
  const auto opened = SafetensorsFolder::open(path);
  if (opened.ok()) return "accepted";
  CHECK(opened.failure().code == base::ExitCode::checkpoint);
  return opened.failure().text;
}

}  // namespace

TEST_CASE("a file of the format's own library reads as what it holds") {
  const auto folder = SafetensorsFolder::open(golden / "reads.safetensors");
  REQUIRE(folder.ok());
  CHECK(folder->tensors().size() == 7);
  CHECK(folder->metadata().at("format") == "pt");
  CHECK(folder->find("conv")->shape == layout::Shape{2, 3, 4, 5});
  CHECK(folder->find("layer.0.bias")->dtype == SafetensorsType::f16);
  for (const std::string name :
       {"layer.0.weight", "layer.0.bias", "layer.1.weight", "conv", "scale", "none"}) {
    check_whole(*folder, name);
  }
  float any = 0;
  const device::Tensor to(&any, device::DType::f32, {1});
  CHECK_THAT(folder->read_box("positions", {{0}, {1}}, to).failure().text, Catch::Contains("I64"));
  CHECK_THAT(folder->read_box("layer.0.wight", {{0}, {1}}, to).failure().text,
             Catch::Contains("did you mean 'layer.0.weight'"));
  for (const layout::Box& box : {layout::Box{{3, 0}, {1, 1}}, layout::Box{{-1, 0}, {1, 1}},
                                 layout::Box{{0, 0}, {3, 5}}, layout::Box{{0}, {1}}}) {
    CHECK_FALSE(folder->read_box("layer.0.weight", box, to).ok());
  }
}

TEST_CASE("what is written equals byte for byte what the format's own library writes") {
  const ScratchFolder scratch;
  const auto path = scratch.path() / "x.safetensors";
  using device::DType;
  huggingface::write_safetensors_file(
      path, {output("b.odd", DType::bf16, {3, 3}), output("z", DType::f32, {2, 2}),
             output("a", DType::bf16, {5}), output("m.scalar", DType::f32, {})});
  CHECK(contents(path) == contents(golden / "writes.safetensors"));
}

TEST_CASE("a sharded folder is written piece by piece and read back") {
  const ScratchFolder scratch;
  const auto folder = scratch.path() / "hf";
  huggingface::write_safetensors(folder, small_model(),
                                 {.max_shard_bytes = 150'000, .piece_bytes = 1000});
  CHECK(std::filesystem::exists(folder / "model-00001-of-00003.safetensors"));
  const auto index = base::Json::parse(contents(folder / "model.safetensors.index.json"));
  std::uint64_t bytes = 0;
  for (int layer = 0; layer < 6; ++layer) {
    bytes += static_cast<std::uint64_t>((150 + layer) * 211 * 2 + 211 * 4);
  }
  CHECK(index["metadata"]["total_size"] == bytes);
  CHECK(index["weight_map"].size() == 12);
  const auto opened = SafetensorsFolder::open(folder);
  REQUIRE(opened.ok());
  CHECK(opened->tensors().size() == 12);
  for (const auto& entry : opened->tensors()) check_whole(*opened, entry.name);
  CHECK_THROWS_WITH(huggingface::write_safetensors(folder, small_model()),
                    Catch::Contains("two models would mix"));
}

TEST_CASE("boxes are read from where they lie, as stored and transposed, into strides too") {
  const ScratchFolder scratch;
  const std::string name = "w";
  const std::int64_t rows = 90;
  const std::int64_t columns = GENERATE(70, 20'000);
  huggingface::write_safetensors(scratch.path(),
                                 {output(name, device::DType::f32, {rows, columns})});
  const auto folder = SafetensorsFolder::open(scratch.path());
  REQUIRE(folder.ok());
  std::vector<float> numbers(static_cast<std::size_t>(rows * columns), -1.0F);
  const layout::Box box{{7, 11}, {40, columns - 30}};
  const auto wide = device::Tensor(numbers.data(), device::DType::f32, {rows, columns});
  const auto part = wide.slice(0, 3, 40).slice(1, 2, columns - 30);
  REQUIRE(folder->read_box(name, box, part).ok());
  std::int64_t wrong = 0;
  for (std::int64_t row = 0; row < rows; ++row) {
    for (std::int64_t column = 0; column < columns; ++column) {
      const bool inside = row >= 3 && row < 43 && column >= 2 && column < columns - 28;
      const float expected =
          inside ? value(name, (row - 3 + 7) * columns + column - 2 + 11) : -1.0F;
      if (wide.f32()[row * columns + column] != expected) ++wrong;
    }
  }
  CHECK(wrong == 0);
  // The transposed tensor is [columns, rows]; a box of it, rounded to bf16.
  const layout::Box turned{{11, 7}, {columns - 30, 40}};
  std::vector<device::Bf16> halves(static_cast<std::size_t>((columns - 30) * 40));
  const device::Tensor to(halves.data(), device::DType::bf16, {columns - 30, 40});
  REQUIRE(folder->read_box(name, turned, to, Orientation::transposed).ok());
  wrong = 0;
  for (std::int64_t row = 0; row < columns - 30; ++row) {
    for (std::int64_t column = 0; column < 40; ++column) {
      const auto expected = value(name, (column + 7) * columns + row + 11);
      if (device::to_float(to.bf16()[row * 40 + column]) != expected) ++wrong;
    }
  }
  CHECK(wrong == 0);
}

TEST_CASE("every half-precision number becomes the float of the same value") {
  for (std::uint32_t bits = 0; bits <= 0xFFFF; ++bits) {
    const int exponent = static_cast<int>(bits >> 10 & 0x1F);
    const double mantissa = bits & 0x3FF;
    const float found = huggingface::half_to_float(static_cast<std::uint16_t>(bits));
    const double sign = (bits & 0x8000) != 0 ? -1 : 1;
    if (exponent == 31 && mantissa != 0) {
      if (!std::isnan(found)) FAIL("not a NaN at " << bits);
      continue;
    }
    const double expected = exponent == 31  ? sign * INFINITY
                            : exponent == 0 ? sign * std::ldexp(mantissa, -24)
                                            : sign * std::ldexp(1024 + mantissa, exponent - 25);
    if (static_cast<double>(found) != expected || std::signbit(found) != (sign < 0)) {
      FAIL("wrong at " << bits);
    }
  }
}

TEST_CASE("crafted headers are refused, each for its own reason") {
  const auto one = [](const std::string& dtype, const std::string& shape,
                      const std::string& range) {
    return "{\"a\":{\"dtype\":\"" + dtype + "\",\"shape\":" + shape + ",\"data_offsets\":" + range +
           "}}";
  };
  CHECK(failure_of(one("F32", "[2]", "[0,8]"), 8) == "accepted");
  CHECK(failure_of("{}", 0) == "accepted");
  struct Case {
    const char* reason;
    std::string header;
    std::size_t data_bytes;
  };
  const std::vector<Case> cases{
      {"lies in bytes", one("F32", "[2]", "[0,8]"), 7},
      {"lies in bytes", one("F32", "[2]", "[8,0]"), 8},
      {"end at byte", one("F32", "[2]", "[0,8]"), 9},
      {"gap", one("F32", "[2]", "[4,12]"), 12},
      {"needs", one("F32", "[3]", "[0,8]"), 8},
      {"needs", one("F16", "[2]", "[0,8]"), 8},
      {"needs", one("F32", "[4294967296,4294967296,4294967296]", "[0,8]"), 8},
      {"needs", one("F32", "[4611686018427387904,4]", "[0,0]"), 0},
      {"unknown type", one("F7", "[2]", "[0,8]"), 8},
      {"needs", one("F4", "[3]", "[0,1]"), 1},
      {"needs", one("F6_E3M2", "[4]", "[0,4]"), 4},
      {"needs", one("C64", "[2]", "[0,8]"), 8},
      {"lacks", one("F32", "[-2]", "[0,8]"), 8},
      {"lacks", one("F32", "[2.0]", "[0,8]"), 8},
      {"lacks", one("F32", "2", "[0,8]"), 8},
      {"lacks", one("F32", "[2]", "[0,8,9]"), 8},
      {"lacks", one("F32", "[18446744073709551615]", "[0,8]"), 8},
      {"lacks", "{\"a\":7}", 0},
      {"__metadata__", "{\"__metadata__\":{\"a\":1}}", 0},
      {"__metadata__", "{\"__metadata__\":[]}", 0},
      {"stands twice",
       "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
       "\"a\":{\"dtype\":\"U8\",\"shape\":[2],\"data_offsets\":[4,6]}}",
       6},
      {"not a JSON object", "[1]", 0},
      {"not valid JSON", "{\"a\":", 0},
      {"overlap",
       "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
       "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[2,6]}}",
       6},
      {"overlap",
       "{\"a\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]},"
       "\"b\":{\"dtype\":\"U8\",\"shape\":[4],\"data_offsets\":[0,4]}}",
       4},
  };
  for (const auto& each : cases) {
    INFO(each.header);
    CHECK_THAT(failure_of(each.header, each.data_bytes), Catch::Contains(each.reason));
  }
  CHECK_THAT(failure_of("{}", 0, UINT64_MAX), Catch::Contains("claims a header"));
  CHECK_THAT(failure_of("{}", 0, 3), Catch::Contains("claims a header"));
  CHECK_THAT(failure_of("{}", 8, 100'000'001), Catch::Contains("claims a header"));
}

TEST_CASE("cut and random files are refused without harm") {
  const ScratchFolder scratch;
  const auto whole = contents(golden / "reads.safetensors");
  const auto path = scratch.path() / "model.safetensors";
  for (std::size_t length = 0; length < whole.size(); ++length) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, length);
    if (SafetensorsFolder::open(path).ok()) FAIL("accepted at " << length << " bytes");
  }
  for (std::uint64_t round = 0; round < 3000; ++round) {
    auto changed = whole;
    const auto random = base::philox(11, 1, round);
    for (std::size_t edit = 0; edit <= random[0] % 3; ++edit) {
      changed[random[edit + 1] % 600] = static_cast<char>(random[edit + 1] >> 20);
    }
    std::ofstream(path, std::ios::binary) << changed;
    const auto opened = SafetensorsFolder::open(path);
    if (!opened.ok()) continue;
    // Tensors of an accepted file can be read without leaving it.
    for (const auto& entry : opened->tensors()) {
      std::vector<float> numbers(static_cast<std::size_t>(layout::element_count(entry.shape)) + 1);
      const device::Tensor to(numbers.data(), device::DType::f32,
                              {layout::element_count(entry.shape)});
      const auto status = opened->read_box(entry.name, layout::whole(entry.shape), to);
      CHECK(status.ok() == (entry.dtype != SafetensorsType::other));
    }
  }
}

TEST_CASE("an index that leads elsewhere or promises too much is refused") {
  const ScratchFolder scratch;
  huggingface::write_safetensors(scratch.path() / "hf", small_model(),
                                 {.max_shard_bytes = 150'000});
  const auto path = scratch.path() / "hf" / "model.safetensors.index.json";
  const auto index = base::Json::parse(contents(path));
  const auto failure_with = [&](const std::string& tensor, const base::Json& file) {
    auto changed = index;
    changed["weight_map"][tensor] = file;
    std::ofstream(path) << base::json_text(changed);
    const auto opened = SafetensorsFolder::open(scratch.path() / "hf");
    return opened.ok() ? std::string("accepted") : opened.failure().text;
  };
  const std::string last = "model-00003-of-00003.safetensors";
  CHECK_THAT(failure_with("layers.0.norm", "../x.safetensors"), Catch::Contains("own folder"));
  CHECK_THAT(failure_with("layers.0.norm", "/etc/passwd"), Catch::Contains("own folder"));
  CHECK_THAT(failure_with("layers.0.norm", 7), Catch::Contains("own folder"));
  CHECK_THAT(failure_with("layers.9.norm", last), Catch::Contains("4 of the 5"));
  CHECK_THAT(failure_with("layers.0.norm", last), Catch::Contains("of the"));
  CHECK_THAT(failure_with("layers.0.norm", "gone.safetensors"), Catch::Contains("No such file"));
  std::filesystem::remove(path);
  CHECK_THAT(SafetensorsFolder::open(scratch.path() / "hf").failure().text,
             Catch::Contains("holds neither"));
}

// Hidden: run it by its tag, then scripts/golden-safetensors check BUILD/safetensors-to-check.
TEST_CASE("writes a sharded folder for the format's own library to read", "[.to-check]") {
  const auto folder = std::filesystem::path(TRIREME_BINARY_DIR) / "safetensors-to-check";
  std::filesystem::remove_all(folder);
  huggingface::write_safetensors(folder, small_model(), {.max_shard_bytes = 150'000});
  CHECK(SafetensorsFolder::open(folder).ok());
}
