// SPDX-License-Identifier: Apache-2.0
// The graphs of attention, given to the real library. It makes plans for GPUs that are only
// described: engines are chosen and their kernels compiled, but nothing runs. What it asks of the
// driver on the way, support/fake_driver answers.
#define CATCH_CONFIG_RUNNER
#include "trireme/base/error.hpp"
#include "trireme/base/file.hpp"
#include "trireme/base/format.hpp"

#include "device/cuda/attention/cudnn/attention.hpp"
#include "device/cuda/attention/cudnn/library.hpp"
#include "support/program.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>
#include <dlfcn.h>

#include <iostream>
#include <regex>
#include <string>

using namespace trireme;
using namespace trireme::device::cudnn;
using trireme::device::AttentionBits;

namespace {

/// As cuDNN writes down what it found of a GPU.
std::string gpu_json(const char* name, int capability, int multiprocessors, int shared_bytes) {
  return base::format(
      R"({{"deviceName":"{}","deviceVer":{},"multiProcessorCount":{},)"
      R"("maxSharedMemoryPerBlockOptin":{},"maxGridSize":[2147483647,65535,65535],)"
      R"("maxBlockSize":[1024,1024,64],"driverVer":13000,"regsPerBlock":65536,)"
      R"("smClockRateKHz":1980000,"memClockRateKHz":3201000,"l2CacheSize":62914560,"warpSize":32,)"
      R"("maxSharedMemoryPerBlock":49152,"reservedSharedMemoryPerBlock":1024,)"
      R"("maxRegistersPerSM":65536,"pciDeviceId":0,"maxCtasPerSM":32,"maxThreadsPerBlock":1024,)"
      R"("maxThreadsPerSM":2048,"isTccDriver":0,"supportCoopLaunch":1,)"
      R"("totalGlobalMem":80000000000,"cudaDeviceId":0}})",
      name, capability, multiprocessors, shared_bytes);
}
const std::string h200 = gpu_json("NVIDIA H200", 900, 132, 232448);
const std::string a100 = gpu_json("NVIDIA A100", 800, 108, 166912);

const Api& api() {
  return (*load_library())->api;
}

Descriptor described(const std::string& json) {
  Descriptor gpu(api(), Kind::device_properties);
  gpu.set_all<char>(Attribute::device_json, json).finalize();
  return gpu;
}

struct Shape {
  std::int64_t batch;
  std::int64_t seq;
  std::int64_t heads;
  std::int64_t kv_heads;
  std::int64_t head_dim;
};

/// Columns of one matrix that holds q, k and v of every head, as the model's do.
Extents columns(const Shape& s, std::int64_t heads) {
  const auto row = (s.heads + 2 * s.kv_heads) * s.head_dim;
  return {{s.batch, heads, s.seq, s.head_dim}, {s.seq * row, s.head_dim, row, 1}};
}
Extents rows_of_heads(const Shape& s) {
  const auto row = s.heads * s.head_dim;
  return {{s.batch, s.heads, s.seq, s.head_dim}, {s.seq * row, s.head_dim, row, 1}};
}

AttentionBackwardExtents extents_of(const Shape& s, bool causal, AttentionBits bits) {
  AttentionBackwardExtents extents;
  extents.bits = bits;
  extents.forward = {causal, columns(s, s.heads), columns(s, s.kv_heads), columns(s, s.kv_heads),
                     rows_of_heads(s)};
  extents.d_out = rows_of_heads(s);
  extents.dq = columns(s, s.heads);
  extents.dk = extents.dv = columns(s, s.kv_heads);
  return extents;
}

/// Extents of a run of one part: queries and heads are cut, keys too; dk and dv are terms.
AttentionBackwardExtents extents_of(AttentionBackwardExtents whole, const BackwardPart& part) {
  auto& forward = whole.forward;
  for (auto* each : {&forward.q, &forward.out, &whole.d_out, &whole.dq}) {
    each->dims = {part.sequences, part.kv_heads * part.of_group, part.queries, each->dims[3]};
  }
  for (auto* each : {&forward.k, &forward.v, &whole.dk, &whole.dv}) {
    each->dims = {part.sequences, part.kv_heads, part.keys, each->dims[3]};
  }
  if (part.terms == BackwardPart::Terms::some) {
    whole.dk = whole.dv = dense(1, 1, part.keys, forward.head_dim());
    whole.key_gradients = DataType::f32;
  }
  return whole;
}

/// The programs of GPUs that the library has loaded so far.
std::vector<std::string> images() {
  void* const driver = ::dlopen("libcuda.so.1", RTLD_NOW);
  REQUIRE(driver != nullptr);
  using Image = const char*(std::size_t index, std::size_t * bytes);
  auto* const image = reinterpret_cast<Image*>(::dlsym(driver, "fake_driver_image"));
  REQUIRE(image != nullptr);
  std::vector<std::string> all;
  std::size_t bytes = 0;
  for (const char* each = image(0, &bytes); each != nullptr; each = image(all.size(), &bytes)) {
    all.emplace_back(each, bytes);
  }
  ::dlclose(driver);
  return all;
}

std::string text_of(const Shape& s, bool causal, AttentionBits bits) {
  return base::format("batch {}, seq {}, heads {}/{} of {}{}, {}", s.batch, s.seq, s.heads,
                      s.kv_heads, s.head_dim, causal ? ", causal" : "",
                      bits == AttentionBits::fastest ? "fastest" : "repeatable");
}

/// A plan of one part that asks for no more than is set aside for it; returns what it asks for.
std::size_t check_part(const Descriptor& gpu, const AttentionBackwardExtents& whole,
                       const BackwardPart& part) {
  INFO("part of " << part.sequences << " sequences, " << part.kv_heads << " x " << part.of_group
                  << " heads, queries from " << part.first_query << ", " << part.queries
                  << ", keys " << part.keys);
  const auto room = backward_bytes(whole.forward, part, whole.bits).library;
  const auto plan = Plan::make(api(), backward_graph(api(), extents_of(whole, part)),
                               {nullptr, &gpu}, {whole.bits, room});
  INFO((plan.ok() ? "" : plan.failure().text));
  REQUIRE(plan.ok());
  return plan->workspace_bytes();
}

void check_forward(const Descriptor& gpu, const AttentionExtents& extents) {
  const auto plan = Plan::make(api(), forward_graph(api(), extents), {nullptr, &gpu},
                               {AttentionBits::repeatable, std::size_t{1} << 12});
  INFO((plan.ok() ? "" : plan.failure().text));
  CHECK(plan.ok());
}

/// The only part of a backward that is not cut.
BackwardPart whole_of(const AttentionBackwardExtents& extents) {
  const BackwardParts parts(extents.forward, extents.bits, std::size_t{1} << 40);
  REQUIRE(parts.list().size() == 1);
  return parts.list().front();
}

void check_plans(const Descriptor& gpu, const Shape& s, bool causal) {
  for (const auto bits : {AttentionBits::fastest, AttentionBits::repeatable}) {
    INFO(text_of(s, causal, bits));
    const auto extents = extents_of(s, causal, bits);
    if (bits == AttentionBits::fastest) check_forward(gpu, extents.forward);
    const auto asked = check_part(gpu, extents, whole_of(extents));
    // Tight: most of what is set aside for the library is what its plan asks for.
    if (bits == AttentionBits::repeatable) {
      CHECK(4 * asked > backward_bytes(extents.forward, whole_of(extents), bits).library);
    }
  }
}

}  // namespace

// A plan is a kernel compiled, which takes a second: those marked [long] run by --long alone.

TEST_CASE("cuDNN plans a backward of each kind for Hopper") {
  const auto gpu = described(h200);
  check_plans(gpu, {2, 1000, 8, 2, 64}, false);
  check_plans(gpu, {1, 512, 4, 4, 136}, true);
  for (const auto bits : {AttentionBits::fastest, AttentionBits::repeatable}) {
    const auto extents = extents_of({1, 131072, 4, 4, 64}, true, bits);
    const BackwardParts parts(extents.forward, bits, std::size_t{1} << 30);
    check_part(gpu, extents, parts.list().back());
  }
}

TEST_CASE("cuDNN plans attention of every class of shapes for Hopper", "[long]") {
  const auto gpu = described(h200);
  for (const std::int64_t head_dim : {64, 128}) {
    for (const auto& [heads, kv_heads] : {std::pair{12, 12}, std::pair{8, 2}, std::pair{6, 1}}) {
      for (const std::int64_t seq : {1, 37, 1000, 1024}) {
        if (head_dim == 128 && heads != 8 && seq != 1000) continue;
        check_plans(gpu, {2, seq, heads, kv_heads, head_dim}, seq != 1000);
      }
    }
  }
}

TEST_CASE("cuDNN plans attention for Ampere") {
  const auto gpu = described(a100);
  check_plans(gpu, {2, 1024, 12, 12, 64}, true);
  check_plans(gpu, {1, 2048, 32, 8, 128}, true);
}

TEST_CASE("cuDNN plans heads of the widths that are said to be taken", "[long]") {
  for (const auto& [json, capability] : {std::pair{&h200, 90}, std::pair{&a100, 80}}) {
    const auto gpu = described(*json);
    for (const std::int64_t head_dim : {8, 40, 128, 136, 192, 256}) {
      const Support support{api().version(), capability};
      if (!takes_head_dim(head_dim, support)) continue;
      check_plans(gpu, {1, 512, 4, head_dim % 16 == 0 ? 2 : 4, head_dim}, true);
    }
  }
}

TEST_CASE("the ordinary backward of long sequences asks for no gradient of scores") {
  const auto gpu = described(h200);
  for (const auto& [heads, kv_heads] : {std::pair{8, 8}, std::pair{8, 2}}) {
    for (const std::int64_t seq : {1024, 8192, 32768, 131072}) {
      const Shape shape{1, seq, heads, kv_heads, 128};
      INFO(text_of(shape, true, AttentionBits::fastest));
      const auto extents = extents_of(shape, true, AttentionBits::fastest);
      const auto whole = whole_of(extents);
      const auto asked = check_part(gpu, extents, whole);
      const auto tokens = static_cast<std::size_t>(seq) * 8 * 128;
      CHECK(asked <= 4096 + (heads == kv_heads ? 0 : 4 * tokens));
      // dq in fp32, a second time for kernels of Ampere; with grouped heads dk and dv of all.
      CHECK(backward_bytes(extents.forward, whole, AttentionBits::fastest).total() <
            12 * tokens + (std::size_t{1} << 19) + 64 * static_cast<std::size_t>(seq));
    }
  }
}

TEST_CASE("cuDNN plans the parts of a backward that is cut", "[long]") {
  const auto hopper = described(h200);
  const auto ampere = described(a100);
  constexpr std::size_t most = std::size_t{1} << 30;
  for (const auto* gpu : {&hopper, &ampere}) {
    for (const Shape& shape :
         {Shape{1, 8192, 32, 8, 128}, Shape{1, 32768, 8, 2, 128}, Shape{1, 131072, 4, 4, 64}}) {
      for (const auto bits : {AttentionBits::fastest, AttentionBits::repeatable}) {
        INFO(text_of(shape, true, bits));
        const auto extents = extents_of(shape, true, bits);
        const BackwardParts parts(extents.forward, bits, most);
        REQUIRE(parts.workspace_bytes() <= most);
        const auto& list = parts.list();
        for (const auto index : {list.size() / 2, list.size() - 1}) {
          check_part(*gpu, extents, list[index]);
        }
      }
    }
  }
}

TEST_CASE("no kernel of a backward adds floats in the order in which blocks come") {
  if (std::string(TRIREME_CUOBJDUMP).empty()) {
    std::cout << "there is no cuobjdump: kernels are not disassembled\n";
    return;
  }
  const auto before = images().size();
  const auto hopper = described(h200);
  const auto ampere = described(a100);
  for (const auto* gpu : {&hopper, &ampere}) {
    for (const Shape& shape : {Shape{2, 1024, 12, 12, 64}, Shape{2, 1024, 8, 2, 128}}) {
      const auto extents = extents_of(shape, true, AttentionBits::repeatable);
      check_forward(*gpu, extents.forward);
      check_part(*gpu, extents, whole_of(extents));
      const BackwardParts blocks(extents.forward, extents.bits, std::size_t{1} << 20);
      REQUIRE(blocks.list().front().terms == BackwardPart::Terms::some);
      check_part(*gpu, extents, blocks.list()[1]);
    }
  }
  const auto all = images();
  REQUIRE(all.size() >= before + 8);
  const tests::TemporaryFolder folder;
  for (auto index = before; index < all.size(); ++index) {
    const auto path = folder.path() / base::format("{}.cubin", index);
    base::write_file_durably(path, all[index]);
    const auto code =
        tests::run_program({.program = TRIREME_CUOBJDUMP, .arguments = {"-sass", path.string()}});
    REQUIRE(code.out.find("MMA") != std::string::npos);
    const std::regex atomic_floats(
        R"(\bUTMARED\w*|\bRED\w*\.[\w.]*F(16|32)|\bATOM\w*\.[\w.]*F(16|32))");
    std::smatch found;
    const bool adds = std::regex_search(code.out, found, atomic_floats);
    INFO("kernel " << index << ": " << (adds ? found.str() : ""));
    CHECK_FALSE(adds);
  }
}

TEST_CASE("a described GPU must be whole") {
  CHECK_THROWS_AS(described("{}"), base::Error);
}

int main(int argc, char** argv) {
  const auto library = load_library();
  if (!library.ok()) {
    std::cout << "TRIREME_SKIP: " << library.failure().text << '\n';
    return 0;
  }
  std::cout << "cuDNN " << (*library)->version << ", " << (*library)->path << '\n';
  constexpr std::size_t describes_gpus = 91100;
  if ((*library)->api.version() < describes_gpus) {
    std::cout << "TRIREME_SKIP: cuDNN before 9.11 cannot plan for a GPU that is not there\n";
    return 0;
  }
  return Catch::Session().run(argc, argv);
}
