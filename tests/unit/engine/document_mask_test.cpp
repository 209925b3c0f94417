// SPDX-License-Identifier: Apache-2.0
// Where documents begin, on its way from token files to the ranks that have layers.
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/dataset.hpp"
#include "trireme/engine/measure.hpp"

#include "support/temporary_folder.hpp"
#include "unit/engine/stage_options.hpp"

#include <catch2/catch.hpp>

#include <algorithm>
#include <fstream>
#include <string>
#include <vector>

using namespace trireme;

namespace {

using Keys = std::vector<std::int32_t>;

/// Three samples of eight tokens, in documents of 3, 2, 7, 8 and 5.
data::TokenDataset packed_samples(const std::filesystem::path& prefix) {
  auto writer = data::IndexedTokensWriter::create(prefix, data::TokenType::int32).value();
  for (const std::size_t length : {3, 2, 7, 8, 5}) writer.append_document(Keys(length, 1));
  writer.finish();
  data::DatasetOptions options;
  options.sequence_length = 8;
  options.shuffle = false;
  return data::TokenDataset::open({prefix.string()}, options, data::FileCheck::sizes).value();
}

engine::EngineOptions masked_stage(const layout::Mesh& mesh, int stage) {
  auto options = testing::options_of_stage(mesh, stage, 6);
  options.schedule.micro_batches = 3;
  options.schedule.document_mask = engine::DocumentMask::yes;
  return options;
}

engine::StepSamples read_samples(const engine::EngineOptions& options,
                                 const data::TokenDataset& dataset, engine::SampleOrder order) {
  const auto groups = comm::make_dry_run_groups(options.sharding.mesh, options.sharding.rank,
                                                comm::DryRunData::untouched);
  const auto kernels = device::make_measuring_kernels();
  auto memory = engine::Memory::measuring();
  const engine::Engine engine(options, groups.views(), *kernels, memory);
  engine::StepSamples samples;
  engine::SampleReader(dataset, engine, order).read(0, 3, samples);
  return samples;
}

std::size_t batch_bytes(const engine::EngineOptions& options) {
  return engine::measure(options)[static_cast<std::size_t>(device::Purpose::batch)];
}

}  // namespace

TEST_CASE("stages that have layers read where documents begin, and nothing that they do not need") {
  const tests::TemporaryFolder folder;
  const auto dataset = packed_samples(folder.path() / "tokens");
  const Keys all{0, 0, 0, 3, 3, 5, 5, 5, 0, 0, 0, 0, 4, 4, 4, 4, 0, 0, 0, 0, 4, 4, 4, 4};
  const auto mesh = layout::Mesh::of(3, 1, 1);
  for (const auto order : {engine::SampleOrder::drawn, engine::SampleOrder::whole_pass}) {
    for (int stage = 0; stage < 3; ++stage) {
      const auto samples = read_samples(masked_stage(mesh, stage), dataset, order);
      CHECK(samples.first_keys == all);
      CHECK(samples.tokens.empty() == (stage != 0));
      CHECK(samples.targets.empty() == (stage != 2));
    }
  }
  auto bare = masked_stage(mesh, 0);
  bare.schedule.stage_layers = {0, 3, 3};
  CHECK(read_samples(bare, dataset, engine::SampleOrder::drawn).first_keys.empty());
  bare.schedule.document_mask = engine::DocumentMask::no;
  bare.schedule.stage_layers = {};
  CHECK(read_samples(bare, dataset, engine::SampleOrder::drawn).first_keys.empty());
}

TEST_CASE("ranks that divide sequences read where documents begin in whole ones") {
  const tests::TemporaryFolder folder;
  const auto dataset = packed_samples(folder.path() / "tokens");
  const auto mesh = layout::Mesh::of(1, 1, 1, 2);
  auto options = masked_stage(mesh, 0);
  options.sharding.rank = base::Rank{0};
  const auto outer = read_samples(options, dataset, engine::SampleOrder::drawn);
  CHECK(outer.first_keys == Keys{0, 0, 5, 5, 0, 0, 4, 4, 0, 0, 4, 4});
  options.sharding.rank = base::Rank{1};
  const auto inner = read_samples(options, dataset, engine::SampleOrder::drawn);
  CHECK(inner.first_keys == Keys{0, 3, 3, 5, 0, 0, 4, 4, 0, 0, 4, 4});
}

TEST_CASE("a mask takes four bytes a token of each micro-batch, where there are layers") {
  const auto mesh = layout::Mesh::of(3, 1, 1);
  auto options = masked_stage(mesh, 1);
  options.schedule.sequence_length = 64;
  const auto bytes = [&](engine::DocumentMask mask) {
    options.schedule.document_mask = mask;
    return batch_bytes(options);
  };
  const std::size_t one = 64 * 4;
  CHECK(bytes(engine::DocumentMask::yes) == bytes(engine::DocumentMask::no) + 3 * one);
  options.schedule.stage_layers = {3, 3, 0};
  options.sharding.rank = base::Rank{2};
  CHECK(bytes(engine::DocumentMask::yes) == bytes(engine::DocumentMask::no));
}

TEST_CASE("tokens of which nobody says where documents begin are refused, by name") {
  const tests::TemporaryFolder folder;
  const auto path = folder.path() / "tokens.bin";
  std::string bytes(1024, '\0');
  const std::int32_t header[] = {20240520, 1, 100};
  std::copy_n(reinterpret_cast<const char*>(header), sizeof header, bytes.begin());
  std::ofstream(path, std::ios::binary) << bytes << std::string(200, '\0');
  config::Options keys;
  keys.data.train = {{path.string(), 1.0}};
  keys.train.sequence_length = 8;
  model::ModelConfig model;
  model.vocab_size = 97;
  const auto open = [&] {
    return engine::open_dataset_alone(keys, engine::Split::train, model, data::FileCheck::whole);
  };
  CHECK(open().ok());
  keys.train.document_mask = true;
  REQUIRE_FALSE(open().ok());
  CHECK_THAT(open().failure().text,
             Catch::Contains("train.document_mask = true but") && Catch::Contains("tokens.bin") &&
                 Catch::Contains("llm.c's format") && Catch::Contains("trireme data prepare"));
}
