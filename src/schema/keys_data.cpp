// SPDX-License-Identifier: Apache-2.0
#include "row.hpp"

namespace trireme::schema {
namespace {

constexpr Rows<&Options::data> data{.concern = Concern::training};

constexpr Key data_rows[] = {
    data.key<&DataOptions::train>(
        "",
        "Prefixes of token files to train on (PREFIX.bin and PREFIX.idx), each with an optional "
        "weight: `books:0.7, code:0.3`. Paths are relative to the working directory."),
    data.key<&DataOptions::validation>("", {.concern = Concern::running},
                                       "Prefixes of held-out token files, for evaluation."),
    data.key<&DataOptions::tokenizer>(
        "", {.concern = Concern::model},
        "The tokenizer.json that made the tokens: gives the vocabulary size and is copied into the "
        "run, which then needs it no more."),
    data.key<&DataOptions::shuffle>(
        "true", "Whether sequences come in a random order, a new one each epoch."),
    data.key<&DataOptions::seed>("auto", {.range = at_least(0), .auto_rule = "train.seed"},
                                 "Seed of the order of sequences."),
};

}  // namespace

std::span<const Key> data_keys() {
  return data_rows;
}

}  // namespace trireme::schema
