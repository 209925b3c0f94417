// SPDX-License-Identifier: Apache-2.0
// Samples of ranks that divide sequences.
#include "trireme/engine/batch_loader.hpp"
#include "trireme/engine/measure.hpp"

#include "support/temporary_folder.hpp"
#include "unit/engine/stage_options.hpp"

#include <catch2/catch.hpp>

#include <vector>

using namespace trireme;

namespace {

/// Eight samples of eight tokens, in order; token t is t.
data::TokenDataset samples_in(const std::filesystem::path& prefix) {
  auto writer = data::IndexedTokensWriter::create(prefix, data::TokenType::int32).value();
  std::vector<std::int32_t> tokens;
  for (int at = 0; at <= 64; ++at) tokens.push_back(at);
  writer.append_document(tokens);
  writer.finish();
  data::DatasetOptions options;
  options.sequence_length = 8;
  options.shuffle = false;
  options.vocab_size = 97;
  return data::TokenDataset::open({prefix.string()}, options, data::FileCheck::sizes).value();
}

engine::StepSamples read_by(base::Rank rank, const data::TokenDataset& dataset) {
  auto options = testing::options_of_stage(layout::Mesh::of(1, 2, 1, 2), 0, 1);
  options.sharding.rank = rank;
  options.schedule.micro_batches = 2;
  const auto groups = comm::make_dry_run_groups(options.sharding.mesh, options.sharding.rank,
                                                comm::DryRunData::untouched);
  const auto kernels = device::make_measuring_kernels();
  auto memory = engine::Memory::measuring();
  const engine::Engine engine(options, groups.views(), *kernels, memory);
  engine::StepSamples samples;
  engine::SampleReader(dataset, engine).read(4, 7, samples);
  return samples;
}

}  // namespace

TEST_CASE("ranks that divide sequences read the same samples, and have two chunks of each") {
  using Tokens = std::vector<std::int32_t>;
  const tests::TemporaryFolder folder;
  const auto dataset = samples_in(folder.path() / "tokens");
  const auto outer = read_by(base::Rank{0}, dataset);
  const auto inner = read_by(base::Rank{1}, dataset);
  for (const auto* samples : {&outer, &inner}) {
    CHECK(samples->first == 4);
    CHECK(samples->counted == 3 * 8);
  }
  CHECK(outer.tokens == Tokens{32, 33, 38, 39, 40, 41, 46, 47});
  CHECK(outer.targets == Tokens{33, 34, 39, 40, 41, 42, 47, 48});
  CHECK(inner.tokens == Tokens{34, 35, 36, 37, 42, 43, 44, 45});
  CHECK(inner.targets == Tokens{35, 36, 37, 38, 43, 44, 45, 46});
  // The other replica, whose second sample lies behind the end.
  const auto last = read_by(base::Rank{3}, dataset);
  CHECK(last.first == 6);
  CHECK(last.targets == Tokens{51, 52, 53, 54, -1, -1, -1, -1});
}
