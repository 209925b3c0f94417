// SPDX-License-Identifier: Apache-2.0
// train.document_mask from token files to losses: by weights of transformers packed documents have
// the losses that each has by itself.
#include "trireme/base/error.hpp"
#include "trireme/base/format.hpp"
#include "trireme/data/indexed_tokens.hpp"

#include "mpi/commands/ranks.hpp"
#include "support/temporary_folder.hpp"

#include <catch2/catch.hpp>

#include <cmath>
#include <span>

using namespace trireme;
using namespace trireme::tests;

namespace {

using Tokens = std::vector<std::int32_t>;

/// One document after the other, of these lengths.
void write_documents(const std::filesystem::path& prefix, const Tokens& tokens,
                     const std::vector<std::size_t>& lengths) {
  auto writer =
      base::value_or_throw(data::IndexedTokensWriter::create(prefix, data::TokenType::int32));
  std::span<const std::int32_t> left(tokens);
  for (const auto length : lengths) {
    writer.append_document(left.first(length));
    left = left.subspan(length);
  }
  writer.finish();
}

double evaluated_loss(int ranks, std::vector<std::string> arguments,
                      const std::vector<std::string>& settings) {
  arguments.insert(arguments.begin(), {"-q", "eval", "--json"});
  const auto out = done_on_ranks(ranks, with_settings(arguments, settings));
  return base::value_or_throw(base::parse_json(out, "stdout")).at("loss").get<double>();
}

}  // namespace

TEST_CASE("packed documents have the losses that transformers' weights give each by itself") {
  const std::vector<std::size_t> lengths{6, 6, 6, 6, 1};
  const auto tokens = made_up_tokens(25, 61);
  for (const std::string name : {"llama-grouped-scaled", "qwen3-wide-heads"}) {
    CAPTURE(name);
    const TemporaryFolder folder;
    const auto weights = golden_model(name).string();
    const auto packed = (folder.path() / "packed").string();
    write_documents(packed, tokens, lengths);
    std::vector<std::string> apart{"--weights", weights};
    for (std::size_t first = 0; first < 24; first += 6) {
      const auto prefix = folder.path() / base::format("from{}", first);
      const auto begin = tokens.begin() + static_cast<std::ptrdiff_t>(first);
      // With the first token of the next, which the last is asked for.
      write_tokens(prefix, Tokens(begin, begin + 7));
      apart.insert(apart.end(), {"--data", prefix.string()});
    }
    const auto expected = evaluated_loss(1, apart, {"train.sequence_length=6"});
    const std::vector<std::string> whole{"--weights", weights, "--data", packed};
    const auto loss = [&](int ranks, const std::vector<std::string>& settings) {
      auto all = settings;
      all.emplace_back("train.sequence_length=24");
      return evaluated_loss(ranks, whole, all);
    };
    CHECK(loss(1, {"train.document_mask=true"}) == Approx(expected).epsilon(1e-5));
    CHECK(loss(2, {"train.document_mask=true", "parallel.context=2"}) ==
          Approx(expected).epsilon(1e-5));
    CHECK(loss(2, {"train.document_mask=true", "parallel.pipeline=2"}) ==
          Approx(expected).epsilon(1e-5));
    CHECK(std::abs(loss(1, {}) - expected) > 1e-3 * expected);
  }
}

TEST_CASE("eval masks as the run does that it evaluates") {
  const TemporaryFolder folder;
  const auto run = (folder.path() / "run").string();
  const auto train = (folder.path() / "train").string();
  const auto held_out = (folder.path() / "held-out").string();
  write_documents(train, made_up_tokens(900, 71), std::vector<std::size_t>(180, 5));
  write_documents(held_out, made_up_tokens(90, 71), std::vector<std::size_t>(18, 5));
  const std::vector<std::string> settings{"run.directory=" + run, "data.train=" + train,
                                          "data.validation=" + held_out, "numerics.threads=1"};
  auto training = settings;
  training.insert(training.end(),
                  {"model.from=" + golden_model("llama-grouped-scaled").string(),
                   "train.sequence_length=12", "train.global_batch=4", "train.steps=3",
                   "train.eval_every=3", "train.eval_batches=0", "train.document_mask=true"});
  done_on_ranks(2, with_settings({"-q", "train"}, training));
  const auto logged = metrics(run, "eval").back()["loss"].get<double>();
  CHECK(evaluated_loss(1, {}, settings) == Approx(logged).epsilon(1e-5));
  auto joined = settings;
  joined.emplace_back("train.document_mask=false");
  CHECK(std::abs(evaluated_loss(1, {}, joined) - logged) > 5e-5 * logged);
}
